-- name: known
-- The guidelines of these ids that are here: the reason of the first version of each, the root of its project, what it
-- says now, and what the last import said.
SELECT
    e.id,
    v.change_reason,
    p.root_path,
    e.deactivated_at IS NULL,
    e.name,
    c.content,
    c.rationale,
    c.created_by,
    i.content,
    i.rationale
FROM scopes_entry AS e
INNER JOIN scopes_version AS v ON v.entry_id = e.id AND v.version_num = 1
INNER JOIN scopes_version AS c ON c.id = e.current_version_id
LEFT JOIN scopes_version AS i ON i.id = (
    SELECT l.id FROM scopes_version AS l
    WHERE l.entry_id = e.id AND l.created_by = 'import'
    ORDER BY l.version_num DESC
    LIMIT 1
)
LEFT JOIN scopes_project AS p ON p.id = e.scope_id
WHERE e.id IN (SELECT value FROM json_each(:ids));

-- name: of_file
-- The active guidelines of a file, by the reason of their version, of which the last is of an import: of the project that
-- was named, else of that of the root, of that of the name without a root, or of none.
SELECT e.id
FROM scopes_entry AS e
INNER JOIN scopes_version AS v ON v.id = e.current_version_id
LEFT JOIN scopes_project AS p ON p.id = e.scope_id
WHERE
    e.kind = 'guideline' AND e.deactivated_at IS NULL AND v.change_reason = :reason AND v.created_by = 'import'
    AND (
        p.fold = :fold AND (:is_named OR p.root_path IS NULL)
        OR NOT :is_named AND (p.id IS NULL OR p.root_path = :root)
    )
ORDER BY e.seq;

-- name: of_root
-- The active guidelines in a project, as above, whose version is of an import, with the reason of that.
SELECT e.id, v.change_reason
FROM scopes_entry AS e
INNER JOIN scopes_version AS v ON v.id = e.current_version_id
INNER JOIN scopes_project AS p ON p.id = e.scope_id
WHERE
    e.kind = 'guideline' AND e.deactivated_at IS NULL AND v.created_by = 'import'
    AND (p.fold = :fold AND (:is_named OR p.root_path IS NULL) OR NOT :is_named AND p.root_path = :root)
ORDER BY e.seq;

-- name: renew
-- Puts an entry in force under a name, which may be that of another, as in an import.
UPDATE scopes_entry
SET
    deactivated_at = NULL,
    name = :name,
    twin = (
        SELECT coalesce(max(o.twin) + 1, 0) FROM scopes_entry AS o
        WHERE
            o.kind = scopes_entry.kind AND o.name = :name AND o.scope = scopes_entry.scope AND o.id <> :id
            AND o.deactivated_at IS NULL
    )
WHERE id = :id;

-- name: project
-- The project of a root, or of a name without a root; of a name whatever its root, if that was named.
SELECT id, root_path
FROM scopes_project
WHERE
    (NOT :is_named AND root_path = :root)
    OR (fold = :fold AND coalesce(org_id, '') = coalesce(:org_id, '') AND (:is_named OR root_path IS NULL))
ORDER BY coalesce(root_path = :root, FALSE) DESC, twin, seq
LIMIT 1;

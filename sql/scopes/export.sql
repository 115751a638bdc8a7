-- name: entries
-- Entries of a kind with their current versions, in the order of creation; tags are case-folded names.
SELECT
    {entry},
    e.deactivated_at
FROM scopes_entry AS e
JOIN scopes_version AS v ON v.id = e.current_version_id
WHERE
    e.kind = :kind
    AND (:scope_type IS NULL OR e.scope_type = :scope_type)
    AND (:scope_id IS NULL OR e.scope_id = :scope_id)
    AND (:inactive OR e.deactivated_at IS NULL)
    AND (
        :tags IS NULL
        OR e.id IN (
            SELECT m.entry_id
            FROM json_each(:tags) AS w
            CROSS JOIN scopes_tag AS t ON t.fold = w.value
            CROSS JOIN scopes_entry_tag AS m ON m.tag_id = t.id
            WHERE m.entry_type = :kind
        )
    )
ORDER BY e.seq;

-- name: versions
-- Every version of the entries, oldest first.
SELECT v.{version}
FROM json_each(:ids) AS i
CROSS JOIN scopes_version AS v ON v.entry_id = i.value
ORDER BY i.key, v.version_num;

-- name: tags
SELECT m.entry_id, t.name
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry_tag AS m ON m.entry_id = i.value AND m.entry_type = :kind
CROSS JOIN scopes_tag AS t ON t.id = m.tag_id
ORDER BY m.seq;

-- name: relations
-- The outgoing relations of the entries.
SELECT r.source_id, r.target_type, r.target_id, r.relation_type, r.id, r.created_at, r.created_by
FROM json_each(:ids) AS i
CROSS JOIN scopes_relation AS r ON r.source_id = i.value AND r.source_type = :kind
ORDER BY r.seq;

-- name: orgs
SELECT id, name, created_at, metadata FROM scopes_org
WHERE :ids IS NULL OR id IN (SELECT value FROM json_each(:ids))
ORDER BY seq;

-- name: projects
SELECT {project} FROM scopes_project
WHERE :ids IS NULL OR id IN (SELECT value FROM json_each(:ids))
ORDER BY seq;

-- name: sessions
SELECT {session} FROM scopes_session
WHERE :ids IS NULL OR id IN (SELECT value FROM json_each(:ids))
ORDER BY seq;

-- name: definitions
-- The tags that are not predefined.
SELECT {tag} FROM scopes_tag
WHERE
    name NOT IN (SELECT name FROM scopes_predefined_tag)
    AND (:names IS NULL OR name IN (SELECT value FROM json_each(:names)))
ORDER BY name;

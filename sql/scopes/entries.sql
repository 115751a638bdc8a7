-- fragment: list_chain
-- In a chain of scopes, without entries shadowed by an active entry of the same name in a nearer scope.
WHERE
    (:category IS NULL OR e.category = :category)
    AND (:inactive OR e.deactivated_at IS NULL)
    AND NOT EXISTS (
        SELECT 1
        FROM json_each(:scopes) AS n
        CROSS JOIN scopes_entry AS x ON x.kind = e.kind AND x.name = e.name AND x.scope = n.value
        WHERE n.key < s.key AND x.deactivated_at IS NULL
    );

-- fragment: list_in
-- In one scope.
WHERE
    e.kind = :kind
    AND e.scope = :scope
    AND (:category IS NULL OR e.category = :category)
    AND (:inactive OR e.deactivated_at IS NULL);

-- fragment: list_all
-- In every scope, or in those of a type or an id.
WHERE
    e.kind = :kind
    AND (:scope_type IS NULL OR e.scope_type = :scope_type)
    AND (:scope_id IS NULL OR e.scope_id = :scope_id)
    AND (:category IS NULL OR e.category = :category)
    AND (:inactive OR e.deactivated_at IS NULL);

-- fragment: was
-- The category and the priority of an entry at a time, if it was changed since.
LEFT JOIN scopes_entry_was AS w ON w.seq = (
    SELECT x.seq
    FROM scopes_entry_was AS x
    WHERE x.entry_id = e.id AND x.until > :at
    ORDER BY x.until, x.seq
    LIMIT 1
);

-- fragment: entry
-- The columns of an entry with its version.
e.id, e.kind, e.scope_type, e.scope_id, e.name, e.category, e.priority, e.current_version_id,
e.deactivated_at IS NULL, e.created_at, e.created_by,
v.{version};

-- fragment: entry_as_of
-- The same as of a time, with the version of then and the category and priority before later changes.
e.id, e.kind, e.scope_type, e.scope_id, e.name,
CASE WHEN w.seq IS NULL THEN e.category ELSE w.category END,
CASE WHEN w.seq IS NULL THEN e.priority ELSE w.priority END, v.id,
e.deactivated_at IS NULL OR e.deactivated_at > :at, e.created_at, e.created_by,
v.{version};

-- fragment: version
-- The columns of a version.
id, entry_id, version_num, description, parameters, examples, constraints, content, rationale, source, confidence,
valid_until, created_at, created_by, change_reason, conflict_flag;

-- name: add
-- Returns the id only if the name was free in its scope. The unique index alone does not suffice: imported duplicates
-- have a `twin` above 0.
INSERT INTO scopes_entry (
    id, kind, scope_type, scope_id, name, category, priority, current_version_id, created_at, created_by
)
SELECT :id, :kind, :scope_type, :scope_id, :name, :category, :priority, :version_id, :now, :created_by
WHERE
    NOT EXISTS (
        SELECT 1
        FROM scopes_entry
        WHERE
            kind = :kind AND name = :name
            AND scope = CASE WHEN :scope_id IS NULL THEN :scope_type ELSE :scope_type || ':' || :scope_id END
            AND deactivated_at IS NULL
    )
ON CONFLICT DO NOTHING
RETURNING id;

-- name: mark_same_name
-- Marks a new entry if another entry has or had its name, and one of these others; if there are more, they are marked
-- already.
UPDATE scopes_entry
SET shared = 1
WHERE
    shared = 0
    AND EXISTS (SELECT 1 FROM scopes_entry WHERE kind = :kind AND name = :name AND id <> :id)
    AND seq IN (
        SELECT seq FROM scopes_entry WHERE id = :id
        UNION ALL
        SELECT seq FROM (SELECT seq FROM scopes_entry WHERE kind = :kind AND name = :name AND id <> :id LIMIT 1) AS one
    );

-- name: mark_late
-- Marks an imported entry that is older than its oldest version.
UPDATE scopes_entry
SET late = 1
WHERE
    id = :id
    AND created_at < (SELECT min(v.created_at) FROM scopes_version AS v WHERE v.entry_id = :id);

-- name: id_by_name
-- The active entry that has the name.
SELECT id FROM scopes_entry
WHERE kind = :kind AND name = :name AND scope = :scope AND deactivated_at IS NULL
ORDER BY twin
LIMIT 1;

-- name: ids_of_name
-- The active entries of a name in any scope, of many the first three.
SELECT id FROM scopes_entry
WHERE kind = :kind AND name = :name AND deactivated_at IS NULL
ORDER BY seq
LIMIT 3;

-- name: add_version
INSERT INTO scopes_version ({version})
VALUES (
    :id, :entry_id, :version_num, :description, :parameters, :examples, :constraints, :content, :rationale, :source,
    :confidence, :valid_until, :now, :created_by, :change_reason, :conflict_flag
);

-- name: set_current_version
-- Category and priority keep their value if the parameter is null.
UPDATE scopes_entry
SET current_version_id = :version_id,
    category = coalesce(:category, category),
    priority = coalesce(:priority, priority)
WHERE id = :id;

-- name: keep_replaced
-- The category and priority of an entry before it was changed.
INSERT INTO scopes_entry_was (entry_id, until, category, priority) VALUES (:id, :now, :category, :priority);

-- name: replaced
-- The categories and priorities of entries before they were changed, the oldest first.
SELECT w.entry_id, w.until, w.category, w.priority
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry_was AS w ON w.entry_id = i.value
ORDER BY w.entry_id, w.until, w.seq;

-- name: deactivate
UPDATE scopes_entry SET deactivated_at = :now WHERE id = :id;

-- name: latest
-- The newest version; after an import the current version may be another.
SELECT id, version_num, created_at FROM scopes_version WHERE entry_id = :id ORDER BY version_num DESC LIMIT 1;

-- name: scopes_of
SELECT e.id, e.scope
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry AS e ON e.id = i.value;

-- name: get
SELECT {entry}
FROM scopes_entry AS e
JOIN scopes_version AS v ON v.id = e.current_version_id
WHERE e.id = :id AND e.kind = :kind;

-- name: get_as_of
-- The entry as of a time, with the version, the category and the priority of that time.
SELECT {entry_as_of}
FROM scopes_entry AS e
JOIN scopes_version AS v ON v.entry_id = e.id
{was}
WHERE e.id = :id AND e.kind = :kind AND v.created_at <= :at
ORDER BY v.version_num DESC
LIMIT 1;

-- name: find
-- The active entry of a name in the nearest of the scopes, which come nearest first.
SELECT {entry}
FROM json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e ON e.kind = :kind AND e.name = :name AND e.scope = s.value AND e.deactivated_at IS NULL
CROSS JOIN scopes_version AS v ON v.id = e.current_version_id
ORDER BY s.key, e.twin
LIMIT 1;

-- name: find_as_of
-- The same as of a time.
SELECT {entry_as_of}
FROM json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e ON e.kind = :kind AND e.name = :name AND e.scope = s.value
CROSS JOIN scopes_version AS v ON v.entry_id = e.id
{was}
WHERE v.created_at <= :at AND (e.deactivated_at IS NULL OR e.deactivated_at > :at)
ORDER BY s.key, e.twin, e.seq DESC, v.version_num DESC
LIMIT 1;

-- name: list_all
-- In every scope, or in those of a type or an id; by priority (guidelines only), then in the order of creation.
SELECT {entry}
FROM scopes_entry AS e
JOIN scopes_version AS v ON v.id = e.current_version_id
{list_all}
ORDER BY e.priority DESC NULLS LAST, e.seq
LIMIT :limit OFFSET :offset;

-- name: list_in
-- In one scope.
SELECT {entry}
FROM scopes_entry AS e
JOIN scopes_version AS v ON v.id = e.current_version_id
{list_in}
ORDER BY e.priority DESC NULLS LAST, e.seq
LIMIT :limit OFFSET :offset;

-- name: list_chain
-- In a chain of scopes, nearest first, without entries shadowed by an active entry of the same name in a nearer scope.
SELECT {entry}
FROM json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e ON e.kind = :kind AND e.scope = s.value
CROSS JOIN scopes_version AS v ON v.id = e.current_version_id
{list_chain}
ORDER BY e.priority DESC NULLS LAST, s.key, e.seq
LIMIT :limit OFFSET :offset;

-- name: versions
SELECT {version}
FROM scopes_version
WHERE entry_id = :id AND (:at IS NULL OR created_at <= :at)
ORDER BY version_num DESC;

-- name: add_conflict
-- Two versions of one entry that were written within five seconds.
INSERT INTO scopes_conflict (id, entry_type, entry_id, version_a_id, version_b_id, detected_at)
VALUES (:id, :entry_type, :entry_id, :version_a_id, :version_b_id, :now);

-- name: all_for_index
-- Every active entry with its current version, and the names of its tags.
SELECT
    {entry},
    (
        SELECT json_group_array(t.name ORDER BY m.seq)
        FROM scopes_entry_tag AS m
        JOIN scopes_tag AS t ON t.id = m.tag_id
        WHERE m.entry_id = e.id AND m.entry_type = e.kind
    )
FROM scopes_entry AS e
JOIN scopes_version AS v ON v.id = e.current_version_id
WHERE e.deactivated_at IS NULL
ORDER BY e.seq;

-- name: count_all
SELECT count(*)
FROM scopes_entry AS e
{list_all};

-- name: count_in
SELECT count(*)
FROM scopes_entry AS e
{list_in};

-- name: count_chain
SELECT count(*)
FROM json_each(:scopes) AS s
CROSS JOIN scopes_entry AS e ON e.kind = :kind AND e.scope = s.value
{list_chain};

-- name: expired
-- Those of some entries whose version of a time has ended its validity by then.
SELECT e.id
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry AS e ON e.id = i.value
CROSS JOIN scopes_version AS v ON v.entry_id = e.id
WHERE
    v.valid_until <= :at
    AND {ends}
    AND v.version_num = (
        SELECT max(w.version_num) FROM scopes_version AS w WHERE w.entry_id = e.id AND w.created_at <= :at
    );

-- name: erase_was
DELETE FROM scopes_entry_was WHERE entry_id = :id;

-- name: erase_conflicts
DELETE FROM scopes_conflict WHERE entry_id = :id;

-- name: erase_tags
DELETE FROM scopes_entry_tag WHERE entry_id = :id;

-- name: erase_relations
DELETE FROM scopes_relation WHERE source_id = :id OR target_id = :id;

-- name: erase_versions
DELETE FROM scopes_version WHERE entry_id = :id;

-- name: erase
DELETE FROM scopes_entry WHERE id = :id;

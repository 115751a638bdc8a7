-- name: insert
-- Gives the id back only if there is no such link yet.
INSERT INTO brain_link (
    db, id, source_type, source_id, target_type, target_id, relationship, strength, context, bidirectional,
    metadata, created_at
)
VALUES (
    :db, :id, :source_type, :source_id, :target_type, :target_id, :relationship, :strength, NULL, 0, :metadata, :now
)
ON CONFLICT (db, source_id, source_type, target_type, target_id, relationship) DO NOTHING
RETURNING id;

-- name: missing_ends
-- Those of the given (type, id) pairs that name nothing in any of the databases.
SELECT p.value ->> 0, p.value ->> 1
FROM json_each(:ends) AS p
WHERE
    NOT EXISTS (
        SELECT 1 FROM json_each(:databases) AS d
        CROSS JOIN brain_memory AS m ON m.db = d.value AND m.id = p.value ->> 1
        WHERE p.value ->> 0 = 'memory'
    )
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:databases) AS d
        CROSS JOIN brain_entity AS e ON e.db = d.value AND e.id = p.value ->> 1
        WHERE p.value ->> 0 = 'entity'
    )
ORDER BY p.key;

-- name: from_source
-- The pluses keep the engine from walking the links of the whole database by age.
SELECT
    id, source_type, source_id, target_type, target_id, relationship, strength, context, bidirectional,
    metadata, created_at
FROM brain_link
WHERE
    db = :db
    AND source_id = :source_id
    AND (:target_id IS NULL OR target_id = :target_id)
    AND (:relationship IS NULL OR relationship = :relationship)
ORDER BY +created_at DESC, +id DESC;

-- name: to_target
SELECT
    id, source_type, source_id, target_type, target_id, relationship, strength, context, bidirectional,
    metadata, created_at
FROM brain_link
WHERE db = :db AND target_id = :target_id AND (:relationship IS NULL OR relationship = :relationship)
ORDER BY +created_at DESC, +id DESC;

-- name: list
SELECT
    id, source_type, source_id, target_type, target_id, relationship, strength, context, bidirectional,
    metadata, created_at
FROM brain_link
WHERE db = :db AND (:relationship IS NULL OR relationship = :relationship)
ORDER BY created_at DESC, id DESC;

-- name: delete
-- Gives the link back, for the history.
DELETE FROM brain_link WHERE db = :db AND id = :id
RETURNING
    id, source_type, source_id, target_type, target_id, relationship, strength, context, bidirectional,
    metadata, created_at;

-- name: unlink
-- The links of the given databases that begin or end at a memory or entity.
DELETE FROM brain_link
WHERE rowid IN (
    SELECT l.rowid FROM json_each(:databases) AS d
    CROSS JOIN brain_link AS l ON l.db = d.value AND l.source_id = :id AND l.source_type = :type
    UNION ALL
    SELECT l.rowid FROM json_each(:databases) AS d
    CROSS JOIN brain_link AS l ON l.db = d.value AND l.target_id = :id AND l.target_type = :type
);

-- name: memories
-- The memories of these ids that are here: root, text and time. The same for the statements below.
SELECT id, project_id, content, created_at
FROM brain_memory
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: entities
SELECT id, CAST(metadata ->> 'root' AS TEXT), name, created_at
FROM brain_entity
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: notes
SELECT id, project_id, content, created_at
FROM brain_note
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: observations
-- The active memories that are part of an entity.
SELECT {memory}
FROM brain_memory
WHERE
    db = :db AND status = 'active'
    AND id IN (
        SELECT source_id FROM brain_link
        WHERE
            db = :db AND target_id = :entity AND target_type = 'entity' AND source_type = 'memory'
            AND relationship = 'part_of'
    )
ORDER BY id;

-- name: imported
-- The active memories of a program: root, text and time.
SELECT id, project_id, content, created_at
FROM brain_memory
WHERE db = :db AND status = 'active' AND source = :program
ORDER BY id;

-- name: known_links
-- Rows are (id, source_type, source_id, target_type, target_id, relationship). Returns the ids of those whose link is
-- there, under any id.
SELECT r.value ->> 0
FROM jsonb_each(:rows) AS r
CROSS JOIN brain_link AS l
    ON l.db = :db AND l.source_id = r.value ->> 2 AND l.source_type = r.value ->> 1 AND l.target_type = r.value ->> 3
    AND l.target_id = r.value ->> 4 AND l.relationship = r.value ->> 5;

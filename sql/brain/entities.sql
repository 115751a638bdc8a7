-- name: insert
-- Rows are (db, and the columns of an entity in their order). As of a memory.
INSERT INTO brain_entity (db, {entity})
SELECT {fields 17} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: get
SELECT {entity}
FROM brain_entity
WHERE db = :db AND id = :id;

-- name: page
SELECT {entity}
FROM brain_entity
WHERE
    db = :db
    AND status = :status
    AND (:type IS NULL OR type = :type)
    AND (:tags IS NULL OR {has_tag})
ORDER BY updated_at DESC, id
LIMIT :limit OFFSET :offset;

-- name: update
UPDATE brain_entity
SET
    name = coalesce(:name, name),
    description = coalesce(:description, description),
    tags = coalesce(:tags, tags),
    status = coalesce(:status, status),
    metadata = coalesce(:metadata, metadata),
    has_embedding = coalesce(:has_embedding, has_embedding),
    embedding_model = iif(:has_embedding IS NULL, embedding_model, :embedding_model),
    updated_at = :now
WHERE db = :db AND id = :id
RETURNING {entity};

-- name: linked
-- The active memories linked to an entity in either direction.
SELECT m.{memory}
FROM (
    SELECT source_id AS id FROM brain_link
    WHERE db = :db AND target_id = :id AND target_type = 'entity' AND source_type = 'memory'
    UNION
    SELECT target_id FROM brain_link
    WHERE db = :db AND source_id = :id AND source_type = 'entity' AND target_type = 'memory'
) AS l
CROSS JOIN brain_memory AS m ON m.db = :db AND m.id = l.id
WHERE +m.status = 'active'
ORDER BY m.importance DESC, m.updated_at DESC, m.id;

-- name: scoped
-- The active memories whose project is an entity; unary + keeps SQLite from the index on status.
SELECT {memory}
FROM brain_memory
WHERE db = :db AND project_id = :id AND +status = 'active'
ORDER BY importance DESC, updated_at DESC, id;

-- name: related
-- The active entities linked to an entity in either direction, once for each relationship, which comes first.
SELECT r.relationship, e.{entity}
FROM (
    SELECT source_id AS id, relationship FROM brain_link
    WHERE db = :db AND target_id = :id AND target_type = 'entity' AND source_type = 'entity'
    UNION
    SELECT target_id, relationship FROM brain_link
    WHERE db = :db AND source_id = :id AND source_type = 'entity' AND target_type = 'entity'
) AS r
CROSS JOIN brain_entity AS e ON e.db = :db AND e.id = r.id
WHERE e.status = 'active' AND e.id <> :id
ORDER BY e.updated_at DESC, e.id, r.relationship;

-- name: delete
DELETE FROM brain_entity WHERE db = :db AND id = :id;

-- name: memories
-- The active memories without an embedding, or with an embedding of another model; without a model only the first.
SELECT {memory}
FROM brain_memory
WHERE db = :db AND status = 'active' AND (has_embedding = 0 OR embedding_model <> :model)
ORDER BY id
LIMIT :limit;

-- name: entities
SELECT {entity}
FROM brain_entity
WHERE db = :db AND status = 'active' AND (has_embedding = 0 OR embedding_model <> :model)
ORDER BY id
LIMIT :limit;

-- name: notes
SELECT {note}
FROM brain_note
WHERE db = :db AND (has_embedding = 0 OR embedding_model <> :model)
ORDER BY id
LIMIT :limit;

-- name: resources
SELECT {resource}
FROM brain_resource
WHERE db = :db AND status <> 'archived' AND (has_embedding = 0 OR embedding_model <> :model)
ORDER BY id
LIMIT :limit;

-- name: flag_memories
UPDATE brain_memory SET has_embedding = 1, embedding_model = :model
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: flag_entities
UPDATE brain_entity SET has_embedding = 1, embedding_model = :model
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: flag_notes
UPDATE brain_note SET has_embedding = 1, embedding_model = :model
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: flag_resources
UPDATE brain_resource SET has_embedding = 1, embedding_model = :model
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

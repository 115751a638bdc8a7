-- name: memories
-- The active memories without an embedding, or with one of another model; without a model only the first.
SELECT
    id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance, memory_type,
    last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding, embedding_model,
    metadata, created_at, updated_at
FROM brain_memory
WHERE db = :db AND status = 'active' AND (has_embedding = 0 OR embedding_model <> :model)
ORDER BY id
LIMIT :limit;

-- name: entities
SELECT
    id, name, type, subtype, description, tags, aliases, status, mention_count, first_mentioned, last_mentioned,
    has_embedding, embedding_model, metadata, created_at, updated_at
FROM brain_entity
WHERE db = :db AND status = 'active' AND (has_embedding = 0 OR embedding_model <> :model)
ORDER BY id
LIMIT :limit;

-- name: notes
SELECT
    id, db, title, content, note_type, summary, key_points, tags, category, parent_note_id, version,
    previous_version_id, project_id, entity_id, word_count, has_embedding, embedding_model, created_at, updated_at
FROM brain_note
WHERE db = :db AND (has_embedding = 0 OR embedding_model <> :model)
ORDER BY id
LIMIT :limit;

-- name: resources
SELECT
    id, db, title, url, resource_type, description, notes, key_takeaways, tags, category, status, quality_rating,
    project_id, source_memory_id, domain, created_at, accessed_at, access_count, has_embedding, embedding_model
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

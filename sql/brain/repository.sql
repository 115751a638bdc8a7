-- name: insert
-- Rows are (db, and the columns of a memory in their order).
INSERT INTO brain_memory (
    db,
    id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance, memory_type,
    last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding, embedding_model,
    metadata, created_at, updated_at
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15,
    value ->> 16, value ->> 17, value ->> 18, value ->> 19, value ->> 20, value ->> 21, value ->> 22
FROM jsonb_each(:rows);

-- name: get
SELECT
    id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance, memory_type,
    last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding, embedding_model,
    metadata, created_at, updated_at
FROM brain_memory
WHERE db = :db AND id = :id;

-- name: get_many
-- The memories of the given ids, in that order.
SELECT
    m.id, m.content, m.category, m.subcategory, m.tags, m.source, m.status, m.superseded_by, m.project_id,
    m.importance, m.memory_type, m.last_accessed_at, m.access_count, m.valid_from, m.valid_until, m.decay_score,
    m.confidence, m.has_embedding, m.embedding_model, m.metadata, m.created_at, m.updated_at
FROM json_each(:ids) AS i
CROSS JOIN brain_memory AS m ON m.db = :db AND m.id = i.value
ORDER BY i.key;

-- name: set_status
UPDATE brain_memory
SET status = :status, superseded_by = :superseded_by, updated_at = :now
WHERE db = :db AND id = :id;

-- name: link
INSERT INTO brain_link (
    id, db, source_type, source_id, target_type, target_id, relationship, strength, context, bidirectional, metadata,
    created_at
)
VALUES (:id, :db, 'memory', :new, 'memory', :old, :relationship, 1.0, :context, 0, :metadata, :now);

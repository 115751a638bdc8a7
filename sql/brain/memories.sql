-- name: page
SELECT
    id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance, memory_type,
    last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding, embedding_model,
    metadata, created_at, updated_at
FROM brain_memory
WHERE
    db = :db
    AND status = :status
    AND (:category IS NULL OR category = :category)
    AND (:project_id IS NULL OR project_id = :project_id)
    AND (:created_after IS NULL OR created_at >= :created_after)
    AND (:created_before IS NULL OR created_at <= :created_before)
    AND (:min_importance IS NULL OR importance >= :min_importance)
    AND (
        :tags IS NULL
        OR EXISTS (
            SELECT 1 FROM json_each(iif(json_valid(brain_memory.tags), brain_memory.tags, '[]')) AS t
            JOIN json_each(:tags) AS w ON t.value = w.value COLLATE NOCASE
        )
    )
ORDER BY importance DESC, updated_at DESC, id
LIMIT :limit OFFSET :offset;

-- name: update
UPDATE brain_memory
SET
    content = coalesce(:content, content),
    category = coalesce(:category, category),
    subcategory = coalesce(:subcategory, subcategory),
    tags = coalesce(:tags, tags),
    status = coalesce(:status, status),
    superseded_by = iif(:status = 'active', NULL, superseded_by),
    importance = coalesce(:importance, importance),
    metadata = coalesce(:metadata, metadata),
    has_embedding = coalesce(:has_embedding, has_embedding),
    embedding_model = iif(:has_embedding IS NULL, embedding_model, :embedding_model),
    updated_at = :now
WHERE db = :db AND id = :id
RETURNING
    id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance, memory_type,
    last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding, embedding_model,
    metadata, created_at, updated_at;

-- name: delete
DELETE FROM brain_memory WHERE db = :db AND id = :id;

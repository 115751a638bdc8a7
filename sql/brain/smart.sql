-- name: same_content
-- The active memories with exactly this content.
SELECT
    id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance, memory_type,
    last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding, embedding_model,
    metadata, created_at, updated_at
FROM brain_memory
WHERE db = :db AND status = 'active' AND content = :content
ORDER BY importance DESC, updated_at DESC, id
LIMIT :limit;

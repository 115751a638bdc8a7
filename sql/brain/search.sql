-- name: memories_with_part
-- The active memories whose content or tags hold a part. By instr: LIKE refuses a long pattern.
SELECT
    id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance, memory_type,
    last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding, embedding_model,
    metadata, created_at, updated_at
FROM brain_memory
WHERE
    db = :db
    AND status = 'active'
    AND (instr(lower(content), lower(:part)) > 0 OR instr(lower(tags), lower(:part)) > 0)
ORDER BY importance DESC, updated_at DESC, id
LIMIT :limit;

-- name: entities_with_part
SELECT
    id, name, type, subtype, description, tags, aliases, status, mention_count, first_mentioned, last_mentioned,
    has_embedding, embedding_model, metadata, created_at, updated_at
FROM brain_entity
WHERE
    db = :db
    AND status = 'active'
    AND (
        instr(lower(name), lower(:part)) > 0
        OR instr(lower(description), lower(:part)) > 0
        OR instr(lower(tags), lower(:part)) > 0
    )
ORDER BY updated_at DESC, id
LIMIT :limit;

-- name: entities_by_ids
-- The entities of the given ids, in that order.
SELECT
    e.id, e.name, e.type, e.subtype, e.description, e.tags, e.aliases, e.status, e.mention_count, e.first_mentioned,
    e.last_mentioned, e.has_embedding, e.embedding_model, e.metadata, e.created_at, e.updated_at
FROM json_each(:ids) AS i
CROSS JOIN brain_entity AS e ON e.db = :db AND e.id = i.value
ORDER BY i.key;

-- name: memories_for_index
-- The indexed rows of every database.
SELECT
    db, id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance, memory_type,
    last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding, embedding_model,
    metadata, created_at, updated_at
FROM brain_memory
WHERE status = 'active';

-- name: entities_for_index
SELECT
    db, id, name, type, subtype, description, tags, aliases, status, mention_count, first_mentioned, last_mentioned,
    has_embedding, embedding_model, metadata, created_at, updated_at
FROM brain_entity
WHERE status = 'active';

-- name: notes_for_index
SELECT
    id, db, title, content, note_type, summary, key_points, tags, category, parent_note_id, version,
    previous_version_id, project_id, entity_id, word_count, has_embedding, embedding_model, created_at, updated_at
FROM brain_note;

-- name: resources_for_index
SELECT
    id, db, title, url, resource_type, description, notes, key_takeaways, tags, category, status, quality_rating,
    project_id, source_memory_id, domain, created_at, accessed_at, access_count, has_embedding, embedding_model
FROM brain_resource
WHERE status <> 'archived';

-- name: tagged
-- The database and id of what is indexed and has one of these tags, in whatever case.
SELECT row.db, row.id
FROM (
    SELECT db, id, tags FROM brain_memory WHERE status = 'active' AND tags IS NOT NULL
    UNION ALL
    SELECT db, id, tags FROM brain_entity WHERE status = 'active' AND tags IS NOT NULL
    UNION ALL
    SELECT db, id, tags FROM brain_note WHERE tags IS NOT NULL
    UNION ALL
    SELECT db, id, tags FROM brain_resource WHERE status <> 'archived' AND tags IS NOT NULL
) AS row
WHERE EXISTS (
    SELECT 1 FROM json_each(iif(json_valid(row.tags), row.tags, '[]')) AS t
    JOIN json_each(:tags) AS w ON t.value = w.value COLLATE NOCASE
);

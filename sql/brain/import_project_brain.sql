-- name: memories
-- Rows whose id exists are skipped; returns the new ids. The same for the statements below.
INSERT INTO brain_memory (
    db, id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance,
    memory_type, last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding,
    embedding_model, metadata, created_at, updated_at
)
SELECT
    :db, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15,
    value ->> 16, value ->> 17, value ->> 18, value ->> 19, value ->> 20, value ->> 21
FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: entities
INSERT INTO brain_entity (
    db, id, name, type, subtype, description, tags, aliases, status, mention_count, first_mentioned, last_mentioned,
    has_embedding, embedding_model, metadata, created_at, updated_at
)
SELECT
    :db, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15
FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: links
INSERT INTO brain_link (
    db, id, source_type, source_id, target_type, target_id, relationship, strength, context, bidirectional,
    metadata, created_at
)
SELECT
    :db, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value ->> 10
FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: notes
INSERT INTO brain_note (
    id, db, title, content, note_type, summary, key_points, tags, category, parent_note_id, version,
    previous_version_id, project_id, entity_id, word_count, has_embedding, embedding_model, created_at, updated_at
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value
    ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15, value
    ->> 16, value ->> 17, value ->> 18
FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: resources
INSERT INTO brain_resource (
    id, db, title, url, resource_type, description, notes, key_takeaways, tags, category, status, quality_rating,
    project_id, source_memory_id, domain, created_at, accessed_at, access_count, has_embedding, embedding_model
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value
    ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15, value
    ->> 16, value ->> 17, value ->> 18, value ->> 19
FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: config
INSERT INTO brain_config (key, value, description, updated_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(:rows)
WHERE true
ON CONFLICT (key) DO NOTHING
RETURNING key;

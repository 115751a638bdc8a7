-- fragment: has_tag
-- Whether a row has any of the tags, in any case.
EXISTS (
    SELECT 1 FROM json_each(iif(json_valid(tags), fold(tags), '[]')) AS t
    JOIN json_each(fold(:tags)) AS w ON t.value = w.value COLLATE NOCASE
);

-- fragment: memory
-- The columns of a memory without its database.
id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance, memory_type,
last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence, has_embedding, embedding_model,
metadata, created_at, updated_at;

-- fragment: entity
-- The columns of an entity without its database.
id, name, type, subtype, description, tags, aliases, status, mention_count, first_mentioned, last_mentioned,
has_embedding, embedding_model, metadata, created_at, updated_at;

-- fragment: note
-- The columns of a note.
id, db, title, content, note_type, summary, key_points, tags, category, parent_note_id, version,
previous_version_id, project_id, entity_id, word_count, has_embedding, embedding_model, created_at, updated_at;

-- fragment: resource
-- The columns of a resource.
id, db, title, url, resource_type, description, notes, key_takeaways, tags, category, status, quality_rating,
project_id, source_memory_id, domain, created_at, accessed_at, access_count, has_embedding, embedding_model;

-- fragment: link
-- The columns of a link.
id, source_type, source_id, target_type, target_id, relationship, strength, context, bidirectional, metadata,
created_at;

-- name: memories_for_index
-- The indexed rows of every database.
SELECT db, {memory}
FROM brain_memory
WHERE status = 'active';

-- name: entities_for_index
SELECT db, {entity}
FROM brain_entity
WHERE status = 'active';

-- name: notes_for_index
SELECT db, {note}
FROM brain_note;

-- name: resources_for_index
SELECT db, {resource}
FROM brain_resource
WHERE status <> 'archived';

-- name: expired
-- The database and id of those of some memories whose validity has ended at a time.
SELECT m.db, m.id
FROM json_each(:keys) AS k
CROSS JOIN brain_memory AS m ON m.db = k.value ->> 0 AND m.id = k.value ->> 1
WHERE m.valid_until <= :at;

-- name: tagged
-- The database and id of indexed rows with any of these tags, in any case.
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
WHERE {has_tag};

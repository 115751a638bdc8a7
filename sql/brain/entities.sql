-- name: insert
-- Rows are (db, and the columns of an entity in their order).
INSERT INTO brain_entity (
    db, id, name, type, subtype, description, tags, aliases, status, mention_count, first_mentioned,
    last_mentioned, has_embedding, embedding_model, metadata, created_at, updated_at
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14,
    value ->> 15, value ->> 16
FROM jsonb_each(:rows);

-- name: get
SELECT
    id, name, type, subtype, description, tags, aliases, status, mention_count, first_mentioned, last_mentioned,
    has_embedding, embedding_model, metadata, created_at, updated_at
FROM brain_entity
WHERE db = :db AND id = :id;

-- name: page
SELECT
    id, name, type, subtype, description, tags, aliases, status, mention_count, first_mentioned, last_mentioned,
    has_embedding, embedding_model, metadata, created_at, updated_at
FROM brain_entity
WHERE
    db = :db
    AND status = :status
    AND (:type IS NULL OR type = :type)
    AND (
        :tags IS NULL
        OR EXISTS (
            SELECT 1 FROM json_each(iif(json_valid(brain_entity.tags), brain_entity.tags, '[]')) AS t
            JOIN json_each(:tags) AS w ON t.value = w.value COLLATE NOCASE
        )
    )
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
RETURNING
    id, name, type, subtype, description, tags, aliases, status, mention_count, first_mentioned, last_mentioned,
    has_embedding, embedding_model, metadata, created_at, updated_at;

-- name: linked
-- The active memories linked to an entity in either direction.
SELECT
    m.id, m.content, m.category, m.subcategory, m.tags, m.source, m.status, m.superseded_by, m.project_id,
    m.importance, m.memory_type, m.last_accessed_at, m.access_count, m.valid_from, m.valid_until, m.decay_score,
    m.confidence, m.has_embedding, m.embedding_model, m.metadata, m.created_at, m.updated_at
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
SELECT
    id, content, category, subcategory, tags, source, status, superseded_by, project_id, importance,
    memory_type, last_accessed_at, access_count, valid_from, valid_until, decay_score, confidence,
    has_embedding, embedding_model, metadata, created_at, updated_at
FROM brain_memory
WHERE db = :db AND project_id = :id AND +status = 'active'
ORDER BY importance DESC, updated_at DESC, id;

-- name: related
-- The active entities linked to an entity in either direction, once for each relationship, which comes first.
SELECT
    r.relationship, e.id, e.name, e.type, e.subtype, e.description, e.tags, e.aliases, e.status,
    e.mention_count, e.first_mentioned, e.last_mentioned, e.has_embedding, e.embedding_model, e.metadata,
    e.created_at, e.updated_at
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

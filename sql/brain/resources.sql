-- name: insert
-- One row, the columns of a resource in their order.
INSERT INTO brain_resource (
    id, db, title, url, resource_type, description, notes, key_takeaways, tags, category, status,
    quality_rating, project_id, source_memory_id, domain, created_at, accessed_at, access_count, has_embedding,
    embedding_model
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14,
    value ->> 15, value ->> 16, value ->> 17, value ->> 18, value ->> 19
FROM jsonb_each(:rows);

-- name: get
SELECT
    id, db, title, url, resource_type, description, notes, key_takeaways, tags, category, status, quality_rating,
    project_id, source_memory_id, domain, created_at, accessed_at, access_count, has_embedding, embedding_model
FROM brain_resource
WHERE db = :db AND id = :id;

-- name: page
-- A null status means all but archived.
SELECT
    id, db, title, url, resource_type, description, notes, key_takeaways, tags, category, status,
    quality_rating, project_id, source_memory_id, domain, created_at, accessed_at, access_count, has_embedding,
    embedding_model
FROM brain_resource
WHERE
    db = :db
    AND iif(:status IS NULL, status <> 'archived', status = :status)
    AND (:resource_type IS NULL OR resource_type = :resource_type)
    AND (:category IS NULL OR category = :category)
    AND (:project_id IS NULL OR project_id = :project_id)
    AND (:domain IS NULL OR domain = :domain)
    AND (
        :tags IS NULL
        OR EXISTS (
            SELECT 1 FROM json_each(iif(json_valid(brain_resource.tags), brain_resource.tags, '[]')) AS t
            JOIN json_each(:tags) AS w ON t.value = w.value COLLATE NOCASE
        )
    )
ORDER BY created_at DESC, id
LIMIT :limit OFFSET :offset;

-- name: touch
UPDATE brain_resource
SET access_count = access_count + 1, accessed_at = :now
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: delete
-- Returns the resource, for the history.
DELETE FROM brain_resource WHERE db = :db AND id = :id
RETURNING
    id, db, title, url, resource_type, description, notes, key_takeaways, tags, category, status, quality_rating,
    project_id, source_memory_id, domain, created_at, accessed_at, access_count, has_embedding, embedding_model;

-- name: list
-- The stores with a number below :below, the newest first.
SELECT seq, id, name, description, metadata, created_at, updated_at, archived_at
FROM files_store
WHERE
    seq < :below
    AND (:archived OR archived_at IS NULL)
    AND (:since IS NULL OR created_at >= :since)
    AND (:until IS NULL OR created_at <= :until)
ORDER BY seq DESC
LIMIT :limit;

-- name: put
UPDATE files_store
SET
    name = :name,
    description = :description,
    metadata = :metadata,
    created_at = :created_at,
    updated_at = :updated_at,
    archived_at = :archived_at
WHERE id = :id;

-- name: delete_memories
DELETE FROM files_memory WHERE id IN (SELECT value FROM json_each(:ids));

-- name: delete_versions
DELETE FROM files_version WHERE store = :store;

-- name: delete
DELETE FROM files_store WHERE id = :id;

-- fragment: version
-- The columns of a version, without its content unless :whole.
seq, id, memory, store, operation, path, CASE WHEN :whole THEN content END AS content, sha256, size,
created_at, created_by, redacted_at, redacted_by;

-- name: list
-- The versions with a number below :below, the newest first.
SELECT {version}
FROM files_version
WHERE
    store = :store
    AND seq < :below
    AND (:memory IS NULL OR memory = :memory)
    AND (:operation IS NULL OR operation = :operation)
    AND (:created_by IS NULL OR created_by = :created_by)
    AND NOT :of_others
    AND (:since IS NULL OR created_at >= :since)
    AND (:until IS NULL OR created_at <= :until)
ORDER BY seq DESC
LIMIT :limit;

-- name: get
SELECT {version}
FROM files_version
WHERE id = :id AND store = :store;

-- name: is_present
SELECT 1 FROM files_memory WHERE version = :id AND id = (SELECT memory FROM files_version WHERE id = :id);

-- name: redact
UPDATE files_version
SET path = NULL, content = NULL, sha256 = NULL, size = NULL, redacted_at = :now, redacted_by = :redacted_by
WHERE id = :id;

-- name: erase
DELETE FROM files_version WHERE memory = :memory;

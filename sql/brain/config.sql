-- name: set
-- A null description keeps the previous description.
INSERT INTO brain_config (key, value, description, updated_at)
VALUES (:key, :value, :description, :now)
ON CONFLICT (key) DO UPDATE SET
    value = excluded.value,
    description = coalesce(excluded.description, brain_config.description),
    updated_at = excluded.updated_at
RETURNING key, value, description, updated_at;

-- name: get
SELECT key, value, description, updated_at FROM brain_config WHERE key = :key;

-- name: page
-- The keys with a prefix, ordered by key.
SELECT key, value, description, updated_at
FROM brain_config
WHERE substr(key, 1, length(:prefix)) = :prefix
ORDER BY key;

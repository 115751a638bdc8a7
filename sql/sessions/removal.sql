-- name: delete_memory
-- Returns the memory, for the history.
DELETE FROM sessions_memory WHERE id = :id
RETURNING id, session_id, content, hash, metadata;

-- name: delete_mentions
DELETE FROM sessions_mention WHERE memory_id IN (SELECT value FROM json_each(:memories));

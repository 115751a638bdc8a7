-- name: delete_memory
-- Returns the memory, for the history.
DELETE FROM sessions_memory WHERE id = :id
RETURNING id, session_id, content, hash, metadata, created_at;

-- name: delete_mentions
DELETE FROM sessions_mention WHERE memory_id IN (SELECT value FROM json_each(:memories));

-- name: of_project
-- The newest memories of these kinds whose metadata names the project, among so many of all.
SELECT id, substr(content, 1, 1000)
FROM sessions_memory
WHERE
    id > (SELECT coalesce(max(id), 0) FROM sessions_memory) - :newest
    AND kind IN (SELECT value FROM json_each(:kinds))
    AND CAST(metadata ->> 'project' AS TEXT) IN (SELECT value FROM json_each(:names))
ORDER BY id DESC
LIMIT :limit;

-- name: drop_handoffs
-- Deletes the memories that hooks have stored of a session; returns it, for the history.
DELETE FROM sessions_memory
WHERE
    id > (SELECT coalesce(max(id), 0) FROM sessions_memory) - :newest
    AND session_id = :session_id
    AND kind = 'handoff'
    AND metadata ->> 'hook' = 1
RETURNING id, session_id, content, hash, metadata, created_at;

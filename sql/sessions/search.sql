-- name: by_ids_or_hash
-- The given memories, and those with the content of the query; null for any session.
SELECT id, session_id, kind, content, summary, tags, priority, metadata, created_at
FROM sessions_memory
WHERE id IN (
    SELECT CAST(value AS INTEGER) FROM json_each(:ids)
    UNION
    SELECT id FROM sessions_memory WHERE hash = :hash AND (:session_id IS NULL OR session_id = :session_id)
);

-- name: recent_of_session
SELECT id, session_id, kind, content, summary, tags, priority, metadata, created_at
FROM sessions_memory
WHERE session_id = :session_id
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: recent
SELECT id, session_id, kind, content, summary, tags, priority, metadata, created_at
FROM sessions_memory
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: mentions
SELECT entity_type, name, source, path FROM sessions_mention WHERE memory_id = :memory_id ORDER BY id;

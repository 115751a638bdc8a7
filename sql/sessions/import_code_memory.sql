-- name: earliest_copy
-- The memory of an earlier import, or of an import that was cut off: `add` finds it a duplicate.
SELECT id FROM sessions_memory
WHERE hash = :hash AND session_id = :session_id AND created_at > :since
ORDER BY created_at, id
LIMIT 1;

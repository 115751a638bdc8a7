-- name: decisions
-- The newest decisions of a project that hold.
SELECT id, substr(content, 1, 1000)
FROM brain_memory
WHERE
    db = :db
    AND project_id IN (SELECT value FROM json_each(:names))
    AND status = 'active'
    AND category = 'decision'
    AND (valid_until IS NULL OR valid_until > :now)
ORDER BY updated_at DESC, id
LIMIT :limit;

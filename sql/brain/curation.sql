-- name: decisions
-- The newest decisions that hold, of a project by its name or by its entity.
SELECT id, substr(content, 1, 1000)
FROM brain_memory
WHERE
    db = :db
    AND project_id IN (
        SELECT value FROM json_each(:names)
        UNION ALL
        SELECT e.id FROM brain_entity AS e
        WHERE e.db = :db AND e.status = 'active' AND e.type = 'project' AND e.name IN (SELECT value FROM json_each(:names))
    )
    AND status = 'active'
    AND category = 'decision'
    AND (valid_until IS NULL OR valid_until > :now)
ORDER BY updated_at DESC, id
LIMIT :limit;

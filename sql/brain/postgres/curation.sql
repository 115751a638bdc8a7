-- name: decisions
-- As in sql/brain; a list does not join rows of text.
SELECT id, substr(content, 1, 1000)
FROM brain_memory
WHERE
    db = :db
    AND (
        project_id IN (SELECT value FROM json_each(:names))
        OR project_id IN (
            SELECT e.id
            FROM brain_entity AS e
            WHERE
                e.db = :db AND e.status = 'active' AND e.type = 'project'
                AND e.name IN (SELECT value FROM json_each(:names))
        )
    )
    AND status = 'active'
    AND category = 'decision'
    AND (valid_until IS NULL OR valid_until > :now)
ORDER BY updated_at DESC, id
LIMIT :limit;

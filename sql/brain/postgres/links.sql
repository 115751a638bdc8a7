-- name: with_entities
SELECT db, {link}
FROM brain_link
WHERE
    db IN (SELECT value FROM json_each(:databases))
    AND (
        (source_id = :id AND source_type = 'memory' AND target_type = 'entity')
        OR (target_id = :id AND target_type = 'memory' AND source_type = 'entity')
    )
ORDER BY created_at, id;

-- name: delete_of_row
DELETE FROM brain_link
WHERE
    db IN (SELECT value FROM json_each(:databases))
    AND ((source_id = :id AND source_type = :type) OR (target_id = :id AND target_type = :type));

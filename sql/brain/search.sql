-- name: memories_with_part
-- The active memories whose content or tags hold a part. By instr: LIKE refuses a long pattern.
SELECT {memory}
FROM brain_memory
WHERE
    db = :db
    AND status = 'active'
    AND (valid_until IS NULL OR valid_until > :now)
    AND (instr(lower(content), lower(:part)) > 0 OR instr(lower(tags), lower(:part)) > 0)
ORDER BY importance DESC, updated_at DESC, id
LIMIT :limit;

-- name: entities_with_part
SELECT {entity}
FROM brain_entity
WHERE
    db = :db
    AND status = 'active'
    AND (
        instr(lower(name), lower(:part)) > 0
        OR instr(lower(description), lower(:part)) > 0
        OR instr(lower(tags), lower(:part)) > 0
    )
ORDER BY updated_at DESC, id
LIMIT :limit;

-- name: entities_by_ids
-- The entities of the given ids, in that order.
SELECT e.{entity}
FROM json_each(:ids) AS i
CROSS JOIN brain_entity AS e ON e.db = :db AND e.id = i.value
ORDER BY i.key;

-- name: add
-- Returns the row only if there was no such link.
INSERT INTO scopes_relation (
    id, source_type, source_id, target_type, target_id, relation_type, created_at, created_by
)
VALUES (:id, :source_type, :source_id, :target_type, :target_id, :relation_type, :now, :created_by)
ON CONFLICT (source_id, source_type, target_id, target_type, relation_type) DO NOTHING
RETURNING id, source_type, source_id, target_type, target_id, relation_type, created_at, created_by;

-- name: get
SELECT id, source_type, source_id, target_type, target_id, relation_type, created_at, created_by
FROM scopes_relation
WHERE
    source_id = :source_id AND source_type = :source_type AND target_id = :target_id AND target_type = :target_type
    AND relation_type = :relation_type;

-- name: from_source
SELECT id, source_type, source_id, target_type, target_id, relation_type, created_at, created_by
FROM scopes_relation
WHERE
    source_id = :source_id
    AND (:source_type IS NULL OR source_type = :source_type)
    AND (:target_type IS NULL OR target_type = :target_type)
    AND (:target_id IS NULL OR target_id = :target_id)
    AND (:relation_type IS NULL OR relation_type = :relation_type)
ORDER BY seq
LIMIT :limit OFFSET :offset;

-- name: to_target
SELECT id, source_type, source_id, target_type, target_id, relation_type, created_at, created_by
FROM scopes_relation
WHERE
    target_id = :target_id
    AND (:source_type IS NULL OR source_type = :source_type)
    AND (:source_id IS NULL OR source_id = :source_id)
    AND (:target_type IS NULL OR target_type = :target_type)
    AND (:relation_type IS NULL OR relation_type = :relation_type)
ORDER BY seq
LIMIT :limit OFFSET :offset;

-- name: list
SELECT id, source_type, source_id, target_type, target_id, relation_type, created_at, created_by
FROM scopes_relation
WHERE
    (:source_type IS NULL OR source_type = :source_type)
    AND (:target_type IS NULL OR target_type = :target_type)
    AND (:relation_type IS NULL OR relation_type = :relation_type)
ORDER BY seq
LIMIT :limit OFFSET :offset;

-- name: delete
DELETE FROM scopes_relation WHERE id = :id
RETURNING id, source_type, source_id, target_type, target_id, relation_type, created_at, created_by;

-- name: delete_by_ends
DELETE FROM scopes_relation
WHERE
    source_id = :source_id AND source_type = :source_type AND target_id = :target_id AND target_type = :target_type
    AND relation_type = :relation_type
RETURNING id, source_type, source_id, target_type, target_id, relation_type, created_at, created_by;

-- name: count_from_source
SELECT count(*)
FROM scopes_relation
WHERE
    source_id = :source_id
    AND (:source_type IS NULL OR source_type = :source_type)
    AND (:target_type IS NULL OR target_type = :target_type)
    AND (:target_id IS NULL OR target_id = :target_id)
    AND (:relation_type IS NULL OR relation_type = :relation_type);

-- name: count_to_target
SELECT count(*)
FROM scopes_relation
WHERE
    target_id = :target_id
    AND (:source_type IS NULL OR source_type = :source_type)
    AND (:source_id IS NULL OR source_id = :source_id)
    AND (:target_type IS NULL OR target_type = :target_type)
    AND (:relation_type IS NULL OR relation_type = :relation_type);

-- name: count_list
SELECT count(*)
FROM scopes_relation
WHERE
    (:source_type IS NULL OR source_type = :source_type)
    AND (:target_type IS NULL OR target_type = :target_type)
    AND (:relation_type IS NULL OR relation_type = :relation_type);

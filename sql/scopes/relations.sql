-- fragment: between
WHERE
    source_id = :source_id AND source_type = :source_type AND target_id = :target_id AND target_type = :target_type
    AND relation_type = :relation_type;

-- fragment: of_types
FROM scopes_relation
WHERE
    (:source_type IS NULL OR source_type = :source_type)
    AND (:target_type IS NULL OR target_type = :target_type)
    AND (:relation_type IS NULL OR relation_type = :relation_type);

-- fragment: to_target
FROM scopes_relation
WHERE
    target_id = :target_id
    AND (:source_type IS NULL OR source_type = :source_type)
    AND (:source_id IS NULL OR source_id = :source_id)
    AND (:target_type IS NULL OR target_type = :target_type)
    AND (:relation_type IS NULL OR relation_type = :relation_type);

-- fragment: from_source
FROM scopes_relation
WHERE
    source_id = :source_id
    AND (:source_type IS NULL OR source_type = :source_type)
    AND (:target_type IS NULL OR target_type = :target_type)
    AND (:target_id IS NULL OR target_id = :target_id)
    AND (:relation_type IS NULL OR relation_type = :relation_type);

-- fragment: relation
-- The columns of a relation.
id, source_type, source_id, target_type, target_id, relation_type, created_at, created_by;

-- name: to_target
SELECT {relation}
{to_target}
ORDER BY seq
LIMIT :limit OFFSET :offset;

-- name: from_source
SELECT {relation}
{from_source}
ORDER BY seq
LIMIT :limit OFFSET :offset;

-- name: add
-- Returns the row only if there was no such link.
INSERT INTO scopes_relation ({relation})
VALUES (:id, :source_type, :source_id, :target_type, :target_id, :relation_type, :created_at, :created_by)
ON CONFLICT DO NOTHING
RETURNING {relation};

-- name: get
SELECT {relation}
FROM scopes_relation
{between};

-- name: list
SELECT {relation}
{of_types}
ORDER BY seq
LIMIT :limit OFFSET :offset;

-- name: delete
DELETE FROM scopes_relation WHERE id = :id
RETURNING {relation};

-- name: delete_by_ends
DELETE FROM scopes_relation
{between}
RETURNING {relation};

-- name: count_from_source
SELECT count(*)
{from_source};

-- name: count_to_target
SELECT count(*)
{to_target};

-- name: count_list
SELECT count(*)
{of_types};

-- name: target_exists
SELECT CASE :kind
    WHEN 'project' THEN EXISTS (SELECT 1 FROM scopes_project WHERE id = :id)
    ELSE EXISTS (SELECT 1 FROM scopes_entry WHERE id = :id AND kind = :kind)
END;

-- name: target_known
-- Whether a row exists or has relations; of any kind for null.
SELECT
    ((:kind IS NULL OR :kind = 'project') AND EXISTS (SELECT 1 FROM scopes_project WHERE id = :id))
    OR EXISTS (SELECT 1 FROM scopes_entry WHERE id = :id AND (:kind IS NULL OR kind = :kind))
    OR EXISTS (SELECT 1 FROM scopes_relation WHERE source_id = :id AND (:kind IS NULL OR source_type = :kind))
    OR EXISTS (SELECT 1 FROM scopes_relation WHERE target_id = :id AND (:kind IS NULL OR target_type = :kind));

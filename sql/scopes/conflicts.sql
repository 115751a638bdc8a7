-- fragment: conflict
-- The columns of a conflict.
id, entry_type, entry_id, version_a_id, version_b_id, detected_at, resolved, resolution, resolved_at, resolved_by;

-- name: list
SELECT {conflict}
FROM scopes_conflict
WHERE resolved = :resolved AND (:entry_type IS NULL OR entry_type = :entry_type)
ORDER BY detected_at, seq
LIMIT :limit OFFSET :offset;

-- name: resolve
UPDATE scopes_conflict
SET resolved = 1, resolution = :resolution, resolved_at = :now, resolved_by = :resolved_by
WHERE id = :id
RETURNING {conflict};

-- name: clear_flag
UPDATE scopes_version SET conflict_flag = 0 WHERE id = :version_id;

-- name: count
SELECT count(*)
FROM scopes_conflict
WHERE resolved = :resolved AND (:entry_type IS NULL OR entry_type = :entry_type);

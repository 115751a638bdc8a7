-- name: exists
SELECT CASE :kind
    WHEN 'project' THEN EXISTS (SELECT 1 FROM scopes_project WHERE id = :id)
    ELSE EXISTS (SELECT 1 FROM scopes_entry WHERE id = :id AND kind = :kind)
END;

-- name: known
-- Whether a row exists or has relations; of any kind for null.
SELECT
    ((:kind IS NULL OR :kind = 'project') AND EXISTS (SELECT 1 FROM scopes_project WHERE id = :id))
    OR EXISTS (SELECT 1 FROM scopes_entry WHERE id = :id AND (:kind IS NULL OR kind = :kind))
    OR EXISTS (SELECT 1 FROM scopes_relation WHERE source_id = :id AND (:kind IS NULL OR source_type = :kind))
    OR EXISTS (SELECT 1 FROM scopes_relation WHERE target_id = :id AND (:kind IS NULL OR target_type = :kind));

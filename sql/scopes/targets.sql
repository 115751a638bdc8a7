-- name: exists
SELECT CASE :kind
    WHEN 'project' THEN EXISTS (SELECT 1 FROM scopes_project WHERE id = :id)
    ELSE EXISTS (SELECT 1 FROM scopes_entry WHERE id = :id AND kind = :kind)
END;

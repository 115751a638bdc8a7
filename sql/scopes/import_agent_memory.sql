-- name: current_version
SELECT current_version_id FROM scopes_entry WHERE id = :id;

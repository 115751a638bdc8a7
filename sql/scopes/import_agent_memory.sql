-- name: current_versions
SELECT e.id, e.current_version_id
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry AS e ON e.id = i.value;

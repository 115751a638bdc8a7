-- name: by_ids
SELECT e.id, e.kind, e.scope, e.name, e.deactivated_at IS NULL, e.created_at
FROM json_each(:ids) AS i
CROSS JOIN scopes_entry AS e ON e.id = i.value;

-- name: used_version_ids
SELECT v.id FROM json_each(:ids) AS i CROSS JOIN scopes_version AS v ON v.id = i.value;

-- name: same_name
-- The entries of a name in a scope, active entries first.
SELECT id, kind, scope, name, deactivated_at IS NULL, created_at
FROM scopes_entry
WHERE kind = :kind AND name = :name AND scope = :scope
ORDER BY deactivated_at IS NOT NULL, twin, seq;

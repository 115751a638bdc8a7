-- name: project
-- The project of any of these folders, else that of a name without a folder.
SELECT id, org_id
FROM scopes_project
WHERE root_path IN (SELECT value FROM json_each(:roots)) OR (fold = :fold AND root_path IS NULL)
ORDER BY coalesce(root_path IN (SELECT value FROM json_each(:roots)), FALSE) DESC, twin, seq
LIMIT 1;

-- name: rules
-- Active guidelines of the scopes of a chain, with the place of the scope in the chain.
SELECT c.key, e.id, e.name, coalesce(e.priority, 0), substr(v.content, 1, 4000)
FROM json_each(:chain) AS c
CROSS JOIN scopes_entry AS e ON e.kind = 'guideline' AND e.scope = c.value AND e.deactivated_at IS NULL
CROSS JOIN scopes_version AS v ON v.id = e.current_version_id
WHERE v.content IS NOT NULL
ORDER BY e.priority DESC NULLS LAST, c.key DESC, e.seq
LIMIT :limit;

-- name: decisions
-- The newest knowledge of a scope that is a decision and still valid.
SELECT e.id, e.name, substr(v.content, 1, 1000)
FROM scopes_entry AS e
CROSS JOIN scopes_version AS v ON v.id = e.current_version_id
WHERE
    e.kind = 'knowledge'
    AND e.scope = :scope
    AND e.deactivated_at IS NULL
    AND e.category = 'decision'
    AND v.content IS NOT NULL
    AND (v.valid_until IS NULL OR v.valid_until > :now OR NOT ({ends}))
ORDER BY v.created_at DESC, e.seq DESC
LIMIT :limit;

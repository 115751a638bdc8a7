-- name: above_session
-- The project of a session and the organization of that project.
SELECT s.project_id, p.org_id
FROM scopes_session AS s
LEFT JOIN scopes_project AS p ON p.id = s.project_id
WHERE s.id = :id;

-- name: above_project
SELECT NULL AS project_id, org_id FROM scopes_project WHERE id = :id;

-- name: exists
SELECT CASE :type
    WHEN 'org' THEN EXISTS (SELECT 1 FROM scopes_org WHERE id = :id)
    WHEN 'project' THEN EXISTS (SELECT 1 FROM scopes_project WHERE id = :id)
    WHEN 'session' THEN EXISTS (SELECT 1 FROM scopes_session WHERE id = :id)
    ELSE false
END;

-- name: known
-- Whether a scope exists or has entries; of any type for null.
SELECT
    (
        (:type IS NULL OR :type = 'org')
        AND EXISTS (SELECT 1 FROM scopes_org WHERE id = :id)
    )
    OR (
        (:type IS NULL OR :type = 'project')
        AND EXISTS (SELECT 1 FROM scopes_project WHERE id = :id)
    )
    OR (
        (:type IS NULL OR :type = 'session')
        AND EXISTS (SELECT 1 FROM scopes_session WHERE id = :id)
    )
    OR EXISTS (
        SELECT 1
        FROM scopes_entry
        WHERE
            kind IN ('tool', 'guideline', 'knowledge')
            AND scope IN (
                coalesce(:type, 'org') || ':' || :id, coalesce(:type, 'project') || ':' || :id,
                coalesce(:type, 'session') || ':' || :id
            )
    );

-- name: id_of_name
-- The id of a project or an organization that a client named instead.
SELECT id FROM scopes_project
WHERE :type = 'project' AND fold = :fold
UNION ALL
SELECT id FROM scopes_org
WHERE :type = 'org' AND name = :name
LIMIT 1;

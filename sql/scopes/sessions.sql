-- name: add
INSERT INTO scopes_session (id, project_id, name, purpose, agent_id, status, started_at, metadata)
VALUES (:id, :project_id, :name, :purpose, :agent_id, 'active', :now, :metadata);

-- name: end
UPDATE scopes_session SET status = :status, ended_at = :now WHERE id = :id
RETURNING id, project_id, name, purpose, agent_id, status, started_at, ended_at, metadata;

-- name: list
SELECT id, project_id, name, purpose, agent_id, status, started_at, ended_at, metadata
FROM scopes_session
WHERE :status IS NULL OR status = :status
ORDER BY seq
LIMIT :limit OFFSET :offset;

-- name: of_project
SELECT id, project_id, name, purpose, agent_id, status, started_at, ended_at, metadata
FROM scopes_session
WHERE project_id = :project_id AND (:status IS NULL OR status = :status)
ORDER BY seq
LIMIT :limit OFFSET :offset;

-- name: count
-- The sessions of a project, or all for null.
SELECT count(*)
FROM scopes_session
WHERE (:project_id IS NULL OR project_id = :project_id) AND (:status IS NULL OR status = :status);

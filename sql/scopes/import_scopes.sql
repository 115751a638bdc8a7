-- name: add_org
INSERT INTO scopes_org (id, name, created_at, metadata) VALUES (:id, :name, :now, :metadata)
ON CONFLICT (id) DO NOTHING;

-- name: projects_by_name
-- The projects of a name in an organization, or without an organization.
SELECT id FROM scopes_project WHERE fold = :fold AND coalesce(org_id, '') = coalesce(:org_id, '');

-- name: add_project
-- A duplicate of a name in the same organization gets the next number.
INSERT INTO scopes_project (
    id, org_id, name, fold, description, root_path, created_at, updated_at, metadata, twin
)
SELECT
    :id, :org_id, :name, :fold, :description, :root_path, :now, :updated_at, :metadata, coalesce(max(twin) + 1, 0)
FROM scopes_project
WHERE fold = :fold AND coalesce(org_id, '') = coalesce(:org_id, '')
ON CONFLICT (id) DO NOTHING;

-- name: add_session
INSERT INTO scopes_session (
    id, project_id, name, purpose, agent_id, status, started_at, ended_at, metadata
)
VALUES (:id, :project_id, :name, :purpose, :agent_id, :status, :now, :ended_at, :metadata)
ON CONFLICT (id) DO NOTHING;

-- fragment: project
id, org_id, name, description, root_path, created_at, updated_at, metadata;

-- fragment: session
id, project_id, name, purpose, agent_id, status, started_at, ended_at, metadata;

-- fragment: changes
-- The changes of a project whose new name is free in its organization.
SET name = coalesce(:name, name),
    fold = coalesce(:fold, fold),
    description = coalesce(:description, description),
    root_path = coalesce(:root_path, root_path),
    metadata = coalesce(:metadata, metadata),
    updated_at = :now
WHERE
    id = :id
    AND (
        :fold IS NULL
        OR fold = :fold
        OR NOT EXISTS (
            SELECT 1
            FROM scopes_project AS o
            WHERE o.fold = :fold AND coalesce(o.org_id, '') = coalesce(scopes_project.org_id, '')
        )
    )
RETURNING {project};

-- name: add_org
INSERT INTO scopes_org (id, name, created_at, metadata) VALUES (:id, :name, :created_at, :metadata)
ON CONFLICT (id) DO NOTHING;

-- name: orgs
SELECT id, name, created_at, metadata FROM scopes_org ORDER BY seq LIMIT :limit OFFSET :offset;

-- name: add_project
-- Returns the row only if no project of the organization had the name.
INSERT INTO scopes_project (id, org_id, name, fold, description, root_path, created_at, updated_at, metadata)
SELECT :id, :org_id, :name, :fold, :description, :root_path, :created_at, :created_at, :metadata
WHERE
    NOT EXISTS (
        SELECT 1 FROM scopes_project WHERE fold = :fold AND coalesce(org_id, '') = coalesce(:org_id, '')
    )
ON CONFLICT DO NOTHING
RETURNING {project};

-- name: project
SELECT {project} FROM scopes_project WHERE id = :id;

-- name: projects_by_name
-- Projects of a name, in any organization.
SELECT {project} FROM scopes_project
WHERE fold = :fold
ORDER BY twin, seq;

-- name: projects
SELECT {project} FROM scopes_project
ORDER BY seq LIMIT :limit OFFSET :offset;

-- name: projects_of_org
SELECT {project} FROM scopes_project
WHERE org_id = :org_id
ORDER BY seq LIMIT :limit OFFSET :offset;

-- name: update_project
-- Returns no row if another project of the organization has the name.
UPDATE OR IGNORE scopes_project
{changes};

-- name: count_orgs
SELECT count(*) FROM scopes_org;

-- name: count_projects
-- The projects of an organization, or all for null.
SELECT count(*) FROM scopes_project WHERE :org_id IS NULL OR org_id = :org_id;

-- name: add_session
INSERT INTO scopes_session ({session})
VALUES (:id, :project_id, :name, :purpose, :agent_id, :status, :started_at, :ended_at, :metadata)
ON CONFLICT (id) DO NOTHING;

-- name: end_session
-- No row for a session that was ended before.
UPDATE scopes_session SET status = :status, ended_at = :now WHERE id = :id AND ended_at IS NULL
RETURNING {session};

-- name: session
SELECT {session} FROM scopes_session WHERE id = :id;

-- name: sessions
SELECT {session} FROM scopes_session
WHERE :status IS NULL OR status = :status
ORDER BY seq LIMIT :limit OFFSET :offset;

-- name: sessions_of_project
SELECT {session} FROM scopes_session
WHERE project_id = :project_id AND (:status IS NULL OR status = :status)
ORDER BY seq LIMIT :limit OFFSET :offset;

-- name: count_sessions
-- The sessions of a project, or all for null.
SELECT count(*)
FROM scopes_session
WHERE (:project_id IS NULL OR project_id = :project_id) AND (:status IS NULL OR status = :status);

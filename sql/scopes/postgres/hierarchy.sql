-- name: update_project
UPDATE scopes_project
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
RETURNING id, org_id, name, description, root_path, created_at, updated_at, metadata;

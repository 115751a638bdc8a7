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

-- name: add_entry
-- An active duplicate of a name in the same scope gets the next number.
INSERT INTO scopes_entry (
    id, kind, scope_type, scope_id, name, category, priority, current_version_id, deactivated_at, created_at,
    created_by, twin
)
SELECT
    :id, :kind, :scope_type, :scope_id, :name, :category, :priority, :version_id, :gone, :now, :created_by,
    coalesce(max(twin) + 1, 0)
FROM scopes_entry
WHERE
    kind = :kind AND name = :name
    AND scope = CASE WHEN :scope_id IS NULL THEN :scope_type ELSE :scope_type || ':' || :scope_id END
    AND deactivated_at IS NULL;

-- name: set_current_version
-- Category and priority keep their value if the parameter is null, unless `whole`.
UPDATE scopes_entry
SET current_version_id = :version_id,
    category = CASE WHEN :whole THEN :category ELSE coalesce(:category, category) END,
    priority = CASE WHEN :whole THEN :priority ELSE coalesce(:priority, priority) END,
    deactivated_at = CASE
        WHEN :stays THEN deactivated_at
        WHEN :gone IS NOT NULL THEN coalesce(deactivated_at, :gone)
    END,
    twin = CASE
        WHEN :stays OR :gone IS NOT NULL OR deactivated_at IS NULL THEN twin
        ELSE (
            SELECT coalesce(max(x.twin) + 1, 0)
            FROM scopes_entry AS x
            WHERE
                x.kind = scopes_entry.kind AND x.name = scopes_entry.name AND x.scope = scopes_entry.scope
                AND x.deactivated_at IS NULL
        )
    END
WHERE id = :id;

-- name: projects_by_name
-- The projects of a name in an organization, or without an organization.
SELECT id FROM scopes_project WHERE fold = :fold AND coalesce(org_id, '') = coalesce(:org_id, '');

-- name: add_project
-- A duplicate of a name in the same organization gets the next number.
INSERT INTO scopes_project (
    id, org_id, name, fold, description, root_path, created_at, updated_at, metadata, twin
)
SELECT
    :id, :org_id, :name, :fold, :description, :root_path, :created_at, :updated_at, :metadata, coalesce(max(twin) + 1, 0)
FROM scopes_project
WHERE fold = :fold AND coalesce(org_id, '') = coalesce(:org_id, '')
ON CONFLICT (id) DO NOTHING;

-- name: used_relation_ids
SELECT r.id FROM json_each(:ids) AS i CROSS JOIN scopes_relation AS r ON r.id = i.value;

-- name: detach_others
DELETE FROM scopes_entry_tag
WHERE entry_id = :id AND entry_type = :kind AND tag_id NOT IN (SELECT value FROM json_each(:tags))
RETURNING {entry_tag};

-- name: delete_other_relations
DELETE FROM scopes_relation
WHERE source_id = :id AND source_type = :kind AND id NOT IN (SELECT value FROM json_each(:kept))
RETURNING {relation};

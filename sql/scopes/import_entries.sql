-- name: add
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

-- name: current_version
SELECT current_version_id FROM scopes_entry WHERE id = :id;

-- name: add_conflict
INSERT INTO scopes_conflict ({conflict})
VALUES (
    :id, :entry_type, :entry_id, :version_a_id, :version_b_id, :detected_at, :resolved, :resolution, :resolved_at,
    :resolved_by
)
ON CONFLICT DO NOTHING;

-- name: add_checkout_event
-- Records the checkout of an imported lock and returns its number, unless it was recorded before or the file is locked
-- here.
INSERT INTO scopes_lock_event (file_path, operation, agent_id, holder, reason, at)
SELECT :file_path, 'checkout', :checked_out_by, :checked_out_by, :reason, :checked_out_at
WHERE
    NOT EXISTS (
        SELECT 1
        FROM scopes_lock_event
        WHERE
            file_path = :file_path AND operation = 'checkout' AND holder = :checked_out_by AND at = :checked_out_at
            AND reason = :reason
    )
    AND NOT EXISTS (SELECT 1 FROM scopes_lock WHERE file_path = :file_path)
RETURNING id;

-- name: add_lock
INSERT INTO scopes_lock ({lock})
VALUES (
    :id, :file_path, :checked_out_by, :session_id, :project_id, :checked_out_at, :expires_at, :metadata, :fencing_token
);

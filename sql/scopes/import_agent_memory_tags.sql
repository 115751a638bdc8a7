-- name: add_tag
INSERT INTO scopes_entry_tag (id, entry_type, entry_id, tag_id, created_at)
VALUES (:id, :type, :entry_id, :tag_id, :now)
ON CONFLICT DO NOTHING;

-- name: add_relation
INSERT INTO scopes_relation ({relation})
VALUES (:id, :source_type, :source_id, :target_type, :target_id, :relation_type, :now, :created_by)
ON CONFLICT DO NOTHING;

-- name: add_conflict
INSERT INTO scopes_conflict ({conflict})
VALUES (
    :id, :entry_type, :entry_id, :version_a_id, :version_b_id, :now, :resolved, :resolution, :resolved_at,
    :resolved_by
)
ON CONFLICT DO NOTHING;

-- name: add_checkout_event
-- Records the checkout of an imported lock and returns its number, unless it was recorded before or the file is locked
-- here.
INSERT INTO scopes_lock_event (file_path, operation, agent_id, holder, reason, at)
SELECT :path, 'checkout', :holder, :holder, :reason, :now
WHERE
    NOT EXISTS (
        SELECT 1
        FROM scopes_lock_event
        WHERE file_path = :path AND operation = 'checkout' AND holder = :holder AND at = :now AND reason = :reason
    )
    AND NOT EXISTS (SELECT 1 FROM scopes_lock WHERE file_path = :path)
RETURNING id;

-- name: add_lock
INSERT INTO scopes_lock ({lock})
VALUES (:id, :path, :holder, :session_id, :project_id, :now, :expires_at, :metadata, :fence);

-- fragment: lock
-- The columns of a lock.
id, file_path, checked_out_by, session_id, project_id, checked_out_at, expires_at, metadata, fencing_token;

-- name: get
SELECT {lock}
FROM scopes_lock
WHERE file_path = :path;

-- name: add_event
INSERT INTO scopes_lock_event (file_path, operation, agent_id, holder, fencing_token, reason, at)
VALUES (:path, :operation, :agent_id, :holder, :fence, :reason, :now)
RETURNING id;

-- name: add_expiry_events
INSERT INTO scopes_lock_event (file_path, operation, holder, fencing_token, at)
SELECT file_path, 'expired', checked_out_by, fencing_token, :now FROM scopes_lock WHERE expires_at <= :now;

-- name: delete_expired
DELETE FROM scopes_lock WHERE expires_at <= :now;

-- name: acquire
-- Returns the row unless another agent or session holds the file; a second checkout keeps the time of the first.
INSERT INTO scopes_lock ({lock})
VALUES (:id, :path, :agent_id, :session_id, :project_id, :now, :expires_at, :metadata, :fence)
ON CONFLICT (file_path) DO UPDATE
SET session_id = coalesce(excluded.session_id, scopes_lock.session_id),
    project_id = coalesce(excluded.project_id, scopes_lock.project_id),
    expires_at = excluded.expires_at,
    metadata = coalesce(excluded.metadata, scopes_lock.metadata),
    fencing_token = excluded.fencing_token
WHERE
    scopes_lock.checked_out_by = excluded.checked_out_by
    AND (
        scopes_lock.session_id IS NULL OR excluded.session_id IS NULL
        OR scopes_lock.session_id = excluded.session_id
    )
RETURNING {lock};

-- name: release
DELETE FROM scopes_lock WHERE file_path = :path;

-- name: list
-- Locks that have not expired.
SELECT {lock}
FROM scopes_lock
WHERE
    (expires_at IS NULL OR expires_at > :now)
    AND (:project_id IS NULL OR project_id = :project_id)
    AND (:session_id IS NULL OR session_id = :session_id)
    AND (:agent_id IS NULL OR checked_out_by = :agent_id)
ORDER BY seq;

-- name: stored_path
-- The path that a lock has of two spellings, the normal one first.
SELECT file_path FROM scopes_lock WHERE file_path IN (:path, :given) ORDER BY file_path <> :path LIMIT 1;

-- name: unlocked_by_force
-- The forced unlock of an agent's last lock on a file, unless the agent has locked it again.
SELECT agent_id, holder, reason, at
FROM scopes_lock_event
WHERE
    file_path = :path AND operation = 'force_unlock' AND holder = :agent_id
    AND NOT EXISTS (
        SELECT 1
        FROM scopes_lock_event AS n
        WHERE
            n.file_path = :path AND n.operation = 'checkout' AND n.holder = :agent_id
            AND n.id > scopes_lock_event.id
    )
ORDER BY id DESC
LIMIT 1;

-- name: forced_unlocks
SELECT agent_id, holder, reason, at
FROM scopes_lock_event
WHERE file_path = :path AND operation = 'force_unlock'
ORDER BY id DESC
LIMIT :limit;

-- name: engine
SELECT 'SQLite';

-- name: counts
SELECT
    (SELECT count(*) FROM scopes_org),
    (SELECT count(*) FROM scopes_project),
    (SELECT count(*) FROM scopes_session),
    (SELECT count(*) FROM scopes_entry WHERE kind = 'tool' AND deactivated_at IS NULL),
    (SELECT count(*) FROM scopes_entry WHERE kind = 'guideline' AND deactivated_at IS NULL),
    (SELECT count(*) FROM scopes_entry WHERE kind = 'knowledge' AND deactivated_at IS NULL),
    (SELECT count(*) FROM scopes_tag),
    (SELECT count(*) FROM scopes_lock WHERE expires_at IS NULL OR expires_at > :now),
    (SELECT count(*) FROM scopes_conflict WHERE resolved = 0);

-- name: clear_locks
DELETE FROM scopes_lock;

-- name: clear_lock_events
DELETE FROM scopes_lock_event;

-- name: clear_conflicts
DELETE FROM scopes_conflict;

-- name: clear_relations
DELETE FROM scopes_relation;

-- name: clear_entry_tags
DELETE FROM scopes_entry_tag;

-- name: clear_tags
DELETE FROM scopes_tag;

-- name: clear_versions
DELETE FROM scopes_version;

-- name: clear_replaced
DELETE FROM scopes_entry_was;

-- name: clear_entries
DELETE FROM scopes_entry;

-- name: clear_sessions
DELETE FROM scopes_session;

-- name: clear_projects
DELETE FROM scopes_project;

-- name: clear_orgs
DELETE FROM scopes_org;

-- name: seed_tags
INSERT INTO scopes_tag (id, name, fold, category, is_predefined, description, created_at)
SELECT 'tag_' || name, name, name, category, 1, description, :now
FROM scopes_predefined_tag
ORDER BY rowid;

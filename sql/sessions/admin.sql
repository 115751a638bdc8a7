-- name: purge_all
DELETE FROM sessions_memory
RETURNING id, content;

-- name: purge_session
DELETE FROM sessions_memory WHERE session_id = :session_id
RETURNING id, content;

-- name: purge_before
DELETE FROM sessions_memory WHERE created_at < :before
RETURNING id, content;

-- name: delete_mentions
DELETE FROM sessions_mention WHERE memory_id IN (SELECT value FROM json_each(:memories));

-- name: counts
SELECT
    (SELECT count(*) FROM sessions_memory),
    (SELECT count(*) FROM sessions_mention),
    (SELECT count(*) FROM sessions_entity),
    (SELECT count(*) FROM sessions_observation),
    (SELECT count(*) FROM sessions_relation);

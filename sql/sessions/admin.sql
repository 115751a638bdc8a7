-- name: delete_slice
-- Deletes the next :limit memories of a session after an id, before a time, or of all, about :bytes of them and at
-- least one; returns them, for the history.
DELETE FROM sessions_memory
WHERE id IN (
    SELECT s.id
    FROM (
        SELECT m.id, m.size, sum(m.size) OVER (ORDER BY m.id) AS total
        FROM (
            SELECT id, octet_length(content) AS size
            FROM sessions_memory
            WHERE
                id > :after
                AND id <= :upto
                AND (:session_id IS NULL OR session_id = :session_id) AND (:before IS NULL OR created_at < :before)
            ORDER BY id
            LIMIT :limit
        ) AS m
    ) AS s
    WHERE s.total - s.size < :bytes
)
RETURNING id, session_id, content, hash, metadata, created_at;

-- name: newest
SELECT id FROM sessions_memory ORDER BY id DESC LIMIT 1;

-- name: counts
SELECT
    (SELECT count(*) FROM sessions_memory),
    (SELECT count(*) FROM sessions_mention),
    (SELECT count(*) FROM sessions_entity),
    (SELECT count(*) FROM sessions_observation),
    (SELECT count(*) FROM sessions_relation);

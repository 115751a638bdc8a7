-- name: known
-- Rows are (session, hash, time); an empty time is any. Returns the numbers of the rows whose memory is there.
SELECT r.key
FROM jsonb_each(:rows) AS r
WHERE
    EXISTS (
        SELECT 1
        FROM sessions_memory AS m
        WHERE
            m.hash = r.value ->> 1 AND m.session_id = r.value ->> 0
            AND r.value ->> 2 IN (m.created_at, '')
    );

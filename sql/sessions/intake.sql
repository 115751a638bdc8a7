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

-- name: imported
-- The memories of which the metadata hold this part, which names a program.
SELECT id, session_id, hash, summary, CAST(metadata ->> 'from' AS TEXT)
FROM sessions_memory
WHERE instr(metadata, :part) > 0
ORDER BY id;

-- name: of_origin
-- The memories of which the metadata hold this part, which names an origin.
SELECT 0, id, metadata, hash, kind, summary, tags
FROM sessions_memory
WHERE instr(metadata, :part) > 0
ORDER BY id;

-- name: same_origin
-- Rows are (session, time, a part of the metadata that names the origin); an empty time is any. Returns the numbers of
-- the rows, and the memories of those origins.
SELECT r.key, m.id, m.metadata, m.hash, m.kind, m.summary, m.tags
FROM jsonb_each(:rows) AS r
JOIN sessions_memory AS m ON m.session_id = r.value ->> 0
    AND m.created_at BETWEEN r.value ->> 1 AND coalesce(nullif(r.value ->> 1, ''), '~')
WHERE instr(m.metadata, r.value ->> 2) > 0
ORDER BY r.key, m.id;

-- name: known
-- Rows are (session, hash, time); `program:` is any session of it, and an empty time is any. Returns the numbers of the rows whose memory is there.
SELECT r.key
FROM jsonb_each(:rows) AS r
WHERE
    EXISTS (
        SELECT 1
        FROM sessions_memory AS m
        WHERE
            m.hash = r.value ->> 1 AND r.value ->> 0 IN (m.session_id, substr(m.session_id, 1, instr(m.session_id, ':')))
            AND r.value ->> 2 IN (m.created_at, '')
    );

-- name: imported
-- The memories of which the metadata hold this part, which names a program.
SELECT id, session_id, hash, summary, created_at, CAST(metadata ->> 'from' AS TEXT)
FROM sessions_memory
WHERE instr(metadata, :part) > 0
ORDER BY id;

-- name: same_origin
-- Rows are (session, time, id of the origin up to 100 characters, its exchange, a part of the metadata that names it); an
-- empty session or time is any. Returns the numbers of the rows, and the memories of those origins.
SELECT r.key, m.id, m.metadata, m.hash, m.kind, m.summary, m.tags
FROM jsonb_each(:rows) AS r
JOIN sessions_memory AS m
    ON substr(coalesce(CAST(CAST(m.metadata ->> 'from' AS TEXT) ->> 'id' AS TEXT), ''), 1, 100) = r.value ->> 2
    AND coalesce(CAST(CAST(m.metadata ->> 'from' AS TEXT) ->> 'exchange' AS TEXT), '') = r.value ->> 3
WHERE
    instr(m.metadata, '"from":{"system":') > 0 AND instr(m.metadata, r.value ->> 4) > 0
    AND r.value ->> 0 IN (m.session_id, '') AND r.value ->> 1 IN (m.created_at, '')
ORDER BY r.key, m.id;

-- name: given_up
-- The memories of a session and a time that begin with this question, of which only an answer may follow.
SELECT 0, id, metadata, hash, kind, summary, tags
FROM sessions_memory
WHERE
    session_id = :session AND created_at = :at AND instr(metadata, :part) > 0
    AND substr(content || :end, 1, length(:question)) = :question
ORDER BY id;

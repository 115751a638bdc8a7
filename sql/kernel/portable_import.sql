-- name: events_kept
-- The number of events of a key; without end where it is indexed.
SELECT iif(
    EXISTS (SELECT 1 FROM doc WHERE space = :space AND key = :key),
    9223372036854775807,
    (SELECT count(*) FROM history WHERE space = :space AND key = :key)
);

-- name: is_indexed
SELECT EXISTS (SELECT 1 FROM doc WHERE space = :space AND key = :key);

-- name: add_release
INSERT INTO doc_release (digest, space, key, at) VALUES (:digest, :space, :key, :at) ON CONFLICT DO NOTHING;

-- name: is_touched
-- Whether a dialect has, or had, any memory.
SELECT
    EXISTS (SELECT 1 FROM history WHERE space = :dialect OR (space > :dialect || ':' AND space < :dialect || ';'))
    OR EXISTS (SELECT 1 FROM doc WHERE space = :dialect OR (space > :dialect || ':' AND space < :dialect || ';'));

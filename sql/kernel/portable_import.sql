-- name: has_history
SELECT EXISTS (SELECT 1 FROM history WHERE space = :space AND key = :key);

-- name: has_event
SELECT EXISTS (
    SELECT 1
    FROM history
    WHERE
        space = :space AND key = :key AND operation = :operation AND before IS :before AND after IS :after
        AND reason IS :reason AND dialect = :dialect AND tool = :tool AND actor = :actor AND at = :at
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

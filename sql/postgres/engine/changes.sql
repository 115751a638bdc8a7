-- name: take
-- What was recorded since the last time, as JSON, and its size.
WITH taken AS (DELETE FROM row_change RETURNING id, source, before, after)
SELECT json_agg(json_build_array(t.source, t.before, t.after) ORDER BY t.id)::text FROM taken AS t;

-- name: revert
SELECT revert_changes(CAST(:changes AS jsonb));

-- name: orphans
SELECT orphans();

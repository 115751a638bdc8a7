-- name: take
-- The changes recorded since the last time, as JSON, and its size.
WITH taken AS (DELETE FROM row_change RETURNING id, source, before, after)
SELECT json_agg(json_build_array(t.source, t.before, t.after) ORDER BY t.id)::text FROM taken AS t;

-- name: revert
-- The images name the tenant by its number at the time, which is another if it has moved since.
SELECT revert_changes(coalesce(jsonb_agg(jsonb_build_array(
    e.v -> 0,
    CASE jsonb_typeof(e.v -> 1) WHEN 'object' THEN (e.v -> 1) || t.own ELSE e.v -> 1 END,
    CASE jsonb_typeof(e.v -> 2) WHEN 'object' THEN (e.v -> 2) || t.own ELSE e.v -> 2 END
) ORDER BY e.n), '[]'))
FROM jsonb_array_elements(CAST(:changes AS jsonb)) WITH ORDINALITY AS e (v, n)
CROSS JOIN (SELECT jsonb_build_object('tenant', tenant()) AS own) AS t;

-- name: orphans
SELECT orphans();

-- name: columns
-- The columns of the tables that can be written, without the column of the tenant.
SELECT c.relname, a.attname
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE
    c.relkind = 'r' AND c.relnamespace = CAST('quipu_data' AS regnamespace)
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attname <> 'tenant'
ORDER BY c.relname, a.attnum;

-- name: last_ids
SELECT name, last FROM counter WHERE name NOT LIKE 'words\_%';

-- name: set_last_id
INSERT INTO counter (name, last) VALUES (:name, :last)
ON CONFLICT (name) DO UPDATE SET last = excluded.last;

-- name: unique_keys
-- The columns of each unique key of a table, without that of the tenant; keys of expressions and of parts are left out.
SELECT string_agg(CAST(a.attname AS text), ' ' ORDER BY a.attnum)
FROM pg_index AS i
JOIN pg_attribute AS a ON a.attrelid = i.indrelid
WHERE
    i.indrelid = to_regclass('quipu_data.' || quote_ident(:table)) AND i.indisunique
    AND i.indexprs IS NULL AND i.indpred IS NULL
    AND a.attnum = ANY (i.indkey) AND a.attname <> 'tenant'
GROUP BY i.indexrelid;

-- name: counted
-- The column of a table for which ids are given that are never given twice.
SELECT a.attname
FROM pg_attrdef AS d
JOIN pg_attribute AS a ON a.attrelid = d.adrelid
WHERE
    d.adrelid = to_regclass('quipu_data.' || quote_ident(:table)) AND a.attnum = d.adnum
    AND strpos(pg_get_expr(d.adbin, d.adrelid), 'next_id(') > 0;

-- name: give
SELECT given_id(:table, :id);

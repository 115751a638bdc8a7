-- Rows of tenants that nobody has, so that the planner knows the tables before there is anything in them: of an empty
-- table it takes any index that begins with the tenant for as good as the one that finds the row. By n_distinct it takes
-- a tenant that it knows nothing of for one that has all rows.
CREATE FUNCTION quipu.fill(source text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    columns text;
    made text;
BEGIN
    SELECT
        string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
        string_agg(
            CASE
                WHEN a.attname = 'tenant' THEN '-n'
                WHEN a.attname = 'kind' THEN '''tool'''
                WHEN a.attname = 'priority' THEN '1 + n % 5'
                WHEN a.attname ~ '(^|_)at$'
                    THEN 'to_char(timestamp ''2000-01-01'' + n * interval ''1 hour'', ''YYYY-MM-DD"T"HH24:MI:SS".0Z"'')'
                WHEN t.typname IN ('int8', 'float8') THEN 'n'
                WHEN t.typname = 'bytea' THEN '''\x00''::bytea'
                WHEN t.typname = '_text' THEN 'ARRAY[''x'' || n]'
                WHEN t.typname = '_int2' THEN 'ARRAY[1]'
                ELSE '''x'' || n'
            END,
            ', ' ORDER BY a.attnum
        )
    INTO columns, made
    FROM pg_attribute AS a
    JOIN pg_type AS t ON t.oid = a.atttypid
    WHERE
        a.attrelid = format('quipu_data.%I', source)::regclass AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attgenerated = '';
    EXECUTE format(
        'INSERT INTO quipu_data.%I (%s) SELECT %s FROM generate_series(1, 200) AS s (n)', source, columns, made
    );
    EXECUTE format('ALTER TABLE quipu_data.%I ALTER COLUMN tenant SET (n_distinct = 1)', source);
    EXECUTE format('ANALYZE quipu_data.%I', source);
END
$$;

SELECT quipu.fill(tablename)
FROM pg_tables
WHERE schemaname = 'quipu_data' AND tablename NOT IN ('commit_mark', 'counter', 'row_change');

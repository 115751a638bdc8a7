-- As the function of kernel/engines/sqlite/connection.py: texts that differ in case are equal after it; if PostgreSQL
-- was built without ICU, those of ASCII.
DO $do$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu') THEN
        CREATE FUNCTION quipu.fold(t text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT lower(t COLLATE "und-x-icu")
        $$;
    ELSE
        CREATE FUNCTION quipu.fold(t text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT lower(t)
        $$;
    END IF;
END
$do$;

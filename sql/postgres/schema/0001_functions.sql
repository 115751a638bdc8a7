-- What statements need beside their tables. `quipu_data` has the tables of all tenants, and `quipu` a view of each
-- with the rows of one tenant, which the setting quipu.tenant names in every transaction.
CREATE SCHEMA quipu_data;

CREATE TABLE quipu.directory (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE
);

CREATE EXTENSION IF NOT EXISTS btree_gin;

CREATE FUNCTION quipu.tenant() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE AS $$
SELECT current_setting('quipu.tenant')::integer
$$;

-- A value of a JSON list, which becomes what the column it meets has; text would not become a number by itself.
CREATE TYPE quipu.item AS (j jsonb);

CREATE FUNCTION quipu.item_text(i quipu.item) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT (i).j #>> '{}'
$$;

CREATE FUNCTION quipu.item_bigint(i quipu.item) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE (i).j WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE ((i).j #>> '{}')::bigint END
$$;

CREATE FUNCTION quipu.item_float(i quipu.item) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT ((i).j #>> '{}')::double precision
$$;

CREATE CAST (quipu.item AS text) WITH FUNCTION quipu.item_text (quipu.item) AS IMPLICIT;

CREATE CAST (quipu.item AS bigint) WITH FUNCTION quipu.item_bigint (quipu.item) AS IMPLICIT;

CREATE CAST (quipu.item AS double precision) WITH FUNCTION quipu.item_float (quipu.item) AS IMPLICIT;

CREATE FUNCTION quipu.item_at(i quipu.item, n integer) RETURNS quipu.item LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT ROW(nullif((i).j -> n, 'null'))::quipu.item
$$;

CREATE OPERATOR quipu.->> (LEFTARG = quipu.item, RIGHTARG = integer, FUNCTION = quipu.item_at);

-- JSON whose texts may hold U+0000, which they do as the driver writes it (kernel/engines/postgres/driver.py).
CREATE FUNCTION quipu.as_json(t text) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE
    WHEN strpos(t, '\u0000') > 0
        THEN regexp_replace(t, '((?<!\\)(?:\\\\)*)\\u0000', '\1' || U&'\E000' || '0', 'g')::jsonb
    ELSE t::jsonb
END
$$;

CREATE FUNCTION quipu.json_each(list text) RETURNS TABLE (key bigint, value quipu.item)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 20 AS $$
SELECT e.n - 1, ROW(nullif(e.j, 'null'))::quipu.item
FROM jsonb_array_elements(quipu.as_json(list)) WITH ORDINALITY AS e (j, n)
$$;

-- The values of a list; an index finds what equals any of them.
CREATE FUNCTION quipu.items(list text) RETURNS quipu.item [] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT ARRAY(SELECT ROW(nullif(e.j, 'null'))::quipu.item FROM jsonb_array_elements(quipu.as_json(list)) AS e (j))
$$;

-- A list of texts as SQLite has it: what the driver has escaped (kernel/engines/postgres/driver.py) as JSON escapes it.
CREATE FUNCTION quipu.json_texts(list json) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT coalesce(replace(replace(list::text, U&'\E000' || '0', '\u0000'), U&'\E000' || '1', '\ue000'), '[]')
$$;

CREATE FUNCTION quipu.json_valid(t text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN quipu.as_json(t) IS NOT NULL;
EXCEPTION WHEN data_exception THEN
    RETURN false;
END
$$;

CREATE FUNCTION quipu.iif(condition boolean, yes anyelement, other anyelement) RETURNS anyelement
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE WHEN condition THEN yes ELSE other END
$$;

CREATE FUNCTION quipu.instr(whole text, part text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT strpos(whole, part)
$$;

CREATE FUNCTION quipu.max(one bigint, other bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT greatest(one, other)
$$;

CREATE FUNCTION quipu.substr(whole bytea, first bigint, size bigint) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT pg_catalog.substr(whole, first::integer, size::integer)
$$;

CREATE FUNCTION quipu.round(number double precision, digits integer) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT round(number::numeric, digits)::double precision
$$;

-- The Julian day of a time in ISO 8601 UTC.
CREATE FUNCTION quipu.julianday(at text) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT extract(epoch FROM rtrim(at, 'Z')::timestamp)::double precision / 86400.0 + 2440587.5
$$;

-- The last ids that tables have given, by tenant. A transaction keeps them in settings, which a rollback restores, and
-- writes them when it commits: a row that each insert changed would grow long.
CREATE TABLE quipu_data.counter (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    name text COLLATE "C" NOT NULL,
    last bigint NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE FUNCTION quipu.last_id(name text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    known text := current_setting('quipu.last_' || name, true);
BEGIN
    IF known IS NOT NULL AND known <> '' THEN
        RETURN known::bigint;
    END IF;
    RETURN coalesce(
        (SELECT c.last FROM quipu_data.counter AS c WHERE c.tenant = quipu.tenant() AND c.name = last_id.name), 0
    );
END
$$;

-- Notes that an id was given; returns it.
CREATE FUNCTION quipu.given_id(name text, id bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    used text := current_setting('quipu.used', true);
BEGIN
    IF id > quipu.last_id(name) THEN
        PERFORM set_config('quipu.last_' || name, id::text, true);
        IF used IS NULL OR used !~ ('\m' || name || '\M') THEN
            PERFORM set_config('quipu.used', coalesce(used, '') || ' ' || name, true);
        END IF;
    END IF;
    RETURN id;
END
$$;

-- The next id of a table that never gives one twice.
CREATE FUNCTION quipu.next_id(name text) RETURNS bigint LANGUAGE sql AS $$
SELECT quipu.given_id(name, quipu.last_id(name) + 1)
$$;

-- The next id of a table that gives one after the largest it has.
CREATE FUNCTION quipu.next_row(name text, id text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    known text := current_setting('quipu.row_' || name, true);
    given bigint;
BEGIN
    IF known IS NULL OR known = '' THEN
        EXECUTE format('SELECT coalesce(max(%I), 0) FROM quipu_data.%I WHERE tenant = quipu.tenant()', id, name)
        INTO given;
    ELSE
        given := known::bigint;
    END IF;
    PERFORM set_config('quipu.row_' || name, (given + 1)::text, true);
    RETURN given + 1;
END
$$;

-- Writes the ids that the transaction has given, before it commits.
CREATE FUNCTION quipu.keep_ids() RETURNS void LANGUAGE sql AS $$
INSERT INTO quipu_data.counter (name, last)
SELECT u.name, quipu.last_id(u.name)
FROM regexp_split_to_table(trim(current_setting('quipu.used', true)), ' ') AS u (name)
WHERE u.name <> ''
ON CONFLICT (tenant, name) DO UPDATE SET last = excluded.last
$$;

-- Makes the views of all tables.
CREATE FUNCTION quipu.make_views() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'quipu_data' ORDER BY tablename LOOP
        EXECUTE format(
            'CREATE OR REPLACE VIEW quipu.%I AS SELECT * FROM quipu_data.%I WHERE tenant = quipu.tenant()', name, name
        );
    END LOOP;
END
$$;

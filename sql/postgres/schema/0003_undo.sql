-- The rows that a call changes, before and after, while the setting quipu.undo is on. What can be derived from rows is
-- left out, as in SQLite's changesets.
CREATE TABLE quipu_data.row_change (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    id bigint GENERATED ALWAYS AS IDENTITY,
    source text NOT NULL,
    before jsonb,
    after jsonb,
    PRIMARY KEY (tenant, id)
);

CREATE FUNCTION quipu.keep_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO quipu_data.row_change (source, after) SELECT TG_TABLE_NAME, to_jsonb(n) FROM new_rows AS n;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO quipu_data.row_change (source, before) SELECT TG_TABLE_NAME, to_jsonb(o) FROM old_rows AS o;
    ELSE
        INSERT INTO quipu_data.row_change (source, before, after)
        SELECT TG_TABLE_NAME, o.j, n.j
        FROM (SELECT to_jsonb(r) AS j, row_number() OVER () AS i FROM old_rows AS r) AS o
        JOIN (SELECT to_jsonb(r) AS j, row_number() OVER () AS i FROM new_rows AS r) AS n USING (i)
        WHERE o.j IS DISTINCT FROM n.j;
    END IF;
    RETURN NULL;
END
$$;

-- Makes the triggers of all tables that have none.
CREATE FUNCTION quipu.make_triggers() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT t.tablename
        FROM pg_tables AS t
        WHERE
            t.schemaname = 'quipu_data' AND t.tablename !~ '^(doc|audit|undo|setting|notes_|counter|commit_mark|row_change)'
            AND NOT EXISTS (
                SELECT 1 FROM pg_trigger AS g
                WHERE g.tgrelid = format('quipu_data.%I', t.tablename)::regclass AND g.tgname = 'keep_inserted'
            )
    LOOP
        EXECUTE format(
            'CREATE TRIGGER keep_inserted AFTER INSERT ON quipu_data.%I REFERENCING NEW TABLE AS new_rows '
            'FOR EACH STATEMENT WHEN (current_setting(''quipu.undo'', true) = ''on'') '
            'EXECUTE FUNCTION quipu.keep_change()', name
        );
        EXECUTE format(
            'CREATE TRIGGER keep_deleted AFTER DELETE ON quipu_data.%I REFERENCING OLD TABLE AS old_rows '
            'FOR EACH STATEMENT WHEN (current_setting(''quipu.undo'', true) = ''on'') '
            'EXECUTE FUNCTION quipu.keep_change()', name
        );
        EXECUTE format(
            'CREATE TRIGGER keep_updated AFTER UPDATE ON quipu_data.%I '
            'REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows '
            'FOR EACH STATEMENT WHEN (current_setting(''quipu.undo'', true) = ''on'') '
            'EXECUTE FUNCTION quipu.keep_change()', name
        );
    END LOOP;
END
$$;

-- The columns of a table that can be written, and the conditions that make one of its rows.
CREATE FUNCTION quipu.written_columns(source text, OUT columns text, OUT same text) LANGUAGE sql STABLE AS $$
SELECT
    (
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
        FROM pg_attribute AS a
        WHERE
            a.attrelid = format('quipu_data.%I', source)::regclass AND a.attnum > 0 AND NOT a.attisdropped
            AND a.attgenerated = ''
    ),
    (
        SELECT string_agg(format('t.%1$I = k.%1$I', a.attname), ' AND ')
        FROM pg_index AS i
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = format('quipu_data.%I', source)::regclass AND i.indisprimary
    )
$$;

-- Takes recorded changes back, the last one first; false where a row is not as the call left it, or is referred to.
CREATE FUNCTION quipu.revert_changes(changes jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    c record;
    written record;
    done bigint;
    r record;
    referred boolean;
BEGIN
    FOR c IN
        SELECT e.v ->> 0 AS source, nullif(e.v -> 1, 'null') AS before, nullif(e.v -> 2, 'null') AS after
        FROM jsonb_array_elements(changes) WITH ORDINALITY AS e (v, n)
        ORDER BY e.n DESC
    LOOP
        CONTINUE WHEN c.source = 'history' AND c.before IS NULL; -- what the history was told stays told
        SELECT * INTO written FROM quipu.written_columns(c.source);
        IF c.after IS NULL THEN
            EXECUTE format(
                'INSERT INTO quipu_data.%1$I (%2$s) '
                'SELECT %2$s FROM jsonb_populate_record(NULL::quipu_data.%1$I, $1) ON CONFLICT DO NOTHING',
                c.source, written.columns
            ) USING c.before;
        ELSIF c.before IS NULL THEN
            EXECUTE format(
                'DELETE FROM quipu_data.%1$I AS t USING jsonb_populate_record(NULL::quipu_data.%1$I, $1) AS k '
                'WHERE %2$s AND to_jsonb(t) = $1',
                c.source, written.same
            ) USING c.after;
        ELSE
            EXECUTE format(
                'UPDATE quipu_data.%1$I AS t '
                'SET (%2$s) = (SELECT %2$s FROM jsonb_populate_record(NULL::quipu_data.%1$I, $1)) '
                'FROM jsonb_populate_record(NULL::quipu_data.%1$I, $2) AS k WHERE %3$s AND to_jsonb(t) = $2',
                c.source, written.columns, written.same
            ) USING c.before, c.after;
        END IF;
        GET DIAGNOSTICS done = ROW_COUNT;
        IF done <> 1 THEN
            RETURN false;
        END IF;
    END LOOP;
    FOR c IN SELECT e.v ->> 0 AS source, nullif(e.v -> 1, 'null') AS before, nullif(e.v -> 2, 'null') AS after
        FROM jsonb_array_elements(changes) AS e (v)
    LOOP
        FOR r IN SELECT * FROM quipu.reference AS f WHERE f.target = c.source AND c.before IS NULL LOOP
            EXECUTE format(
                'SELECT EXISTS (SELECT 1 FROM quipu_data.%1$I WHERE tenant = quipu.tenant() AND %2$I::text = $1) '
                'AND NOT EXISTS (SELECT 1 FROM quipu_data.%3$I WHERE tenant = quipu.tenant() AND %4$I::text = $1)',
                r.source, r.source_column, r.target, r.target_column
            ) INTO referred USING c.after ->> r.target_column;
            IF referred THEN
                RETURN false;
            END IF;
        END LOOP;
        FOR r IN SELECT * FROM quipu.reference AS f WHERE f.source = c.source AND c.before IS NOT NULL LOOP
            CONTINUE WHEN c.before ->> r.source_column IS NULL;
            EXECUTE format(
                'SELECT NOT EXISTS (SELECT 1 FROM quipu_data.%1$I WHERE tenant = quipu.tenant() AND %2$I::text = $1)',
                r.target, r.target_column
            ) INTO referred USING c.before ->> r.source_column;
            IF referred THEN
                RETURN false;
            END IF;
        END LOOP;
    END LOOP;
    RETURN true;
END
$$;

-- The number of rows that refer to a row that is not there.
CREATE FUNCTION quipu.orphans() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    r record;
    broken bigint;
    found bigint := 0;
BEGIN
    FOR r IN SELECT * FROM quipu.reference LOOP
        EXECUTE format(
            'SELECT count(*) FROM quipu.%1$I AS s WHERE s.%2$I IS NOT NULL '
            'AND NOT EXISTS (SELECT 1 FROM quipu.%3$I AS t WHERE t.%4$I = s.%2$I)',
            r.source, r.source_column, r.target, r.target_column
        ) INTO broken;
        found := found + broken;
    END LOOP;
    RETURN found;
END
$$;

-- The references that sql/schema declares, which kernel/engines/postgres/schema.py writes. SQLite checks them in an undo only, and deletions rely on that.
CREATE TABLE quipu.reference (
    source text NOT NULL,
    source_column text NOT NULL,
    target text NOT NULL,
    target_column text NOT NULL,
    PRIMARY KEY (source, source_column)
);

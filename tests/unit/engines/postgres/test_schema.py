"""Definitions of SQLite become definitions of PostgreSQL, with the tenant in each key."""

from kernel.engines.postgres.schema import references, translate_index, translate_table

TEAM = """CREATE TABLE team (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    org TEXT NOT NULL REFERENCES org (id),
    kind TEXT NOT NULL CHECK (kind IN ('a', 'b')),
    rank REAL GENERATED ALWAYS AS (julianday(name)) VIRTUAL,
    UNIQUE (org, name)
) STRICT"""


def test_a_table_has_the_tenant_in_each_key_and_no_references() -> None:
    assert translate_table(TEAM) == (
        "CREATE TABLE quipu_data.team (tenant integer NOT NULL DEFAULT quipu.tenant(), "
        "id bigint NOT NULL DEFAULT quipu.next_id('team'), "
        'name text COLLATE "C" NOT NULL, '
        'org text COLLATE "C" NOT NULL, '
        "kind text COLLATE \"C\" NOT NULL CHECK (kind IN ('a', 'b')), "
        "rank double precision GENERATED ALWAYS AS (quipu.julianday(name)) STORED, "
        "PRIMARY KEY (tenant, id), UNIQUE (tenant, name), UNIQUE (tenant, org, name));"
    )


def test_a_rowid_is_numbered_for_each_tenant() -> None:
    text = "CREATE TABLE line (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT"
    assert translate_table(text) == (
        "CREATE TABLE quipu_data.line (tenant integer NOT NULL DEFAULT quipu.tenant(), "
        "id bigint NOT NULL DEFAULT quipu.next_row('line', 'id'), data bytea NOT NULL, PRIMARY KEY (tenant, id));"
    )


def test_a_text_key_needs_no_number() -> None:
    text = "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT) STRICT, WITHOUT ROWID"
    assert translate_table(text) == (
        "CREATE TABLE quipu_data.setting (tenant integer NOT NULL DEFAULT quipu.tenant(), "
        'name text COLLATE "C" NOT NULL, value text COLLATE "C", PRIMARY KEY (tenant, name));'
    )


def test_an_index_keeps_its_condition_and_ignores_case() -> None:
    text = "CREATE UNIQUE INDEX by_name ON team (name COLLATE NOCASE, rank DESC) WHERE org IS NULL"
    assert translate_index(text) == (
        "CREATE UNIQUE INDEX by_name ON quipu_data.team (tenant, lower(name), rank DESC) WHERE org IS NULL;"
    )


def test_references_are_listed() -> None:
    assert list(references("team", TEAM)) == [("team", "org", "org", "id")]

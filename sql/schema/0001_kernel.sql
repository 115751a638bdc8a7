CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE doc_model (
    id INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    dimensions INTEGER NOT NULL
) STRICT;

CREATE TABLE doc_place (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    scope TEXT NOT NULL,
    UNIQUE (space, scope)
) STRICT;

CREATE TABLE doc (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    space TEXT NOT NULL,
    key TEXT NOT NULL,
    place INTEGER NOT NULL REFERENCES doc_place (id),
    text TEXT NOT NULL,
    grams TEXT NOT NULL,
    dialect TEXT NOT NULL,
    tool TEXT NOT NULL,
    actor TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (space, key)
) STRICT;

CREATE INDEX doc_by_place ON doc (place);

CREATE VIEW doc_content AS
SELECT id, text, grams, 'quipuplace' || place AS place FROM doc;

CREATE VIRTUAL TABLE doc_fts USING fts5 (
    text,
    grams,
    place,
    content = 'doc_content',
    content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE VIRTUAL TABLE doc_term USING fts5vocab ('doc_fts', 'row');

CREATE TABLE doc_vector (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    doc INTEGER NOT NULL UNIQUE REFERENCES doc (id),
    model INTEGER NOT NULL REFERENCES doc_model (id),
    place INTEGER NOT NULL,
    scale REAL NOT NULL,
    vector BLOB NOT NULL,
    sketch BLOB NOT NULL,
    tokens BLOB NOT NULL
) STRICT;

CREATE TABLE history (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    key TEXT NOT NULL,
    operation TEXT NOT NULL,
    before TEXT,
    after TEXT,
    reason TEXT,
    dialect TEXT NOT NULL,
    tool TEXT NOT NULL,
    actor TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

CREATE INDEX history_by_key ON history (space, key, id);

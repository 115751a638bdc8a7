CREATE TABLE doc_sketch (
    last INTEGER PRIMARY KEY,
    model INTEGER NOT NULL REFERENCES doc_model (id),
    ids BLOB NOT NULL,
    places BLOB NOT NULL,
    words BLOB NOT NULL
) STRICT;

CREATE TABLE doc_gone (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    vector INTEGER NOT NULL
) STRICT;

CREATE INDEX doc_place_by_scope ON doc_place (scope);

CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    dialect TEXT NOT NULL,
    tool TEXT NOT NULL,
    actor TEXT NOT NULL,
    outcome TEXT NOT NULL,
    touched INTEGER NOT NULL,
    targets TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;

CREATE TABLE undo (
    audit INTEGER PRIMARY KEY REFERENCES audit (id),
    at TEXT NOT NULL,
    targets TEXT NOT NULL,
    changes BLOB NOT NULL
) STRICT;

CREATE INDEX undo_by_time ON undo (at);

-- Documents that look written to steer whoever reads them, by the rule that says so.
CREATE TABLE doc_flag (
    doc INTEGER PRIMARY KEY REFERENCES doc (id),
    rule TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

-- What somebody has looked at and let go: the digest is of space, key and text, so that it counts for this text alone.
CREATE TABLE doc_release (
    digest TEXT PRIMARY KEY,
    space TEXT NOT NULL,
    key TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

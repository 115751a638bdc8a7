-- Places in a repository that memories name, as a checkout of a project has shown them to a client: the digest of when
-- each was first met, and what has become of it since, empty for nothing. A row that is older than the last change of
-- its document does not count.
CREATE TABLE doc_witness (
    doc INTEGER NOT NULL,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    line INTEGER NOT NULL,
    project TEXT NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (doc, path, name, line)
) STRICT, WITHOUT ROWID;

CREATE INDEX doc_witness_stale ON doc_witness (project, doc) WHERE state <> '';

-- The memories that a hook has added to a session of a client: ids and the times of their last changes, no texts.
CREATE TABLE audit_shown (
    session TEXT NOT NULL,
    at TEXT NOT NULL,
    tool TEXT NOT NULL,
    memories TEXT NOT NULL,
    PRIMARY KEY (session, at, tool)
) STRICT, WITHOUT ROWID;

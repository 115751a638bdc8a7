-- `seq` is the order of insertion, in which everything is listed. `lowered` is what a search for a substring reads:
-- name, type and observations line by line in lower case, which SQLite makes of ASCII only.
CREATE TABLE graph_entity (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    entity_type TEXT NOT NULL,
    lowered TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE graph_observation (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    entity INTEGER NOT NULL REFERENCES graph_entity (seq),
    text TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX graph_observation_by_entity ON graph_observation (entity);

-- By names, since the entities at the ends need not exist.
CREATE TABLE graph_relation (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    from_name TEXT NOT NULL,
    to_name TEXT NOT NULL,
    relation_type TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (from_name, to_name, relation_type)
) STRICT;

CREATE INDEX graph_relation_by_end ON graph_relation (to_name);

-- `seq` is the order of insertion, which lists of the newest first follow.
CREATE TABLE files_store (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata TEXT NOT NULL,
    archived_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

-- The store of the tool is there from the start: an undo of the first file takes no store from the others.
INSERT INTO files_store (id, name, description, metadata, created_at, updated_at)
SELECT 'memstore_memories', 'memories', '', '{}', n.now, n.now
FROM (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS now) AS n;

-- A path begins with a slash; directories are what the paths imply. The content is that of the version.
CREATE TABLE files_memory (
    id TEXT PRIMARY KEY,
    store TEXT NOT NULL REFERENCES files_store (id),
    path TEXT NOT NULL,
    version TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (store, path)
) STRICT;

-- A version of a memory stays when the memory is deleted. One that was redacted keeps neither path nor content.
CREATE TABLE files_version (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    memory TEXT NOT NULL,
    store TEXT NOT NULL REFERENCES files_store (id),
    operation TEXT NOT NULL,
    path TEXT,
    sha256 TEXT,
    size INTEGER,
    created_by TEXT,
    created_at TEXT NOT NULL,
    redacted_by TEXT,
    redacted_at TEXT,
    content TEXT
) STRICT;

CREATE INDEX files_version_by_store ON files_version (store);
CREATE INDEX files_version_by_memory ON files_version (memory);

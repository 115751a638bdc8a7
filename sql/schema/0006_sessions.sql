CREATE TABLE sessions_memory (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    kind TEXT,
    content TEXT NOT NULL,
    summary TEXT NOT NULL,
    tags TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 5),
    metadata TEXT NOT NULL,
    hash TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX sessions_memory_by_hash ON sessions_memory (hash, session_id, created_at);

CREATE INDEX sessions_memory_by_session ON sessions_memory (session_id, created_at, id);

CREATE INDEX sessions_memory_by_time ON sessions_memory (created_at, id);

CREATE TABLE sessions_mention (
    id INTEGER PRIMARY KEY,
    memory_id INTEGER NOT NULL REFERENCES sessions_memory (id),
    entity_type TEXT NOT NULL,
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    path TEXT
) STRICT;

CREATE INDEX sessions_mention_by_memory ON sessions_mention (memory_id, id);

CREATE TABLE sessions_entity (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    entity_type TEXT NOT NULL,
    stated INTEGER NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX sessions_entity_by_name ON sessions_entity (name COLLATE NOCASE);

CREATE TABLE sessions_observation (
    id INTEGER PRIMARY KEY,
    entity_id INTEGER NOT NULL REFERENCES sessions_entity (id),
    content TEXT NOT NULL,
    memory_id INTEGER REFERENCES sessions_memory (id),
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX sessions_observation_by_entity ON sessions_observation (entity_id, id);

CREATE INDEX sessions_observation_by_memory ON sessions_observation (memory_id) WHERE memory_id IS NOT NULL;

CREATE TABLE sessions_relation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id INTEGER NOT NULL REFERENCES sessions_entity (id),
    target_id INTEGER NOT NULL REFERENCES sessions_entity (id),
    relation_type TEXT NOT NULL,
    stated INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (source_id, target_id, relation_type)
) STRICT;

CREATE INDEX sessions_relation_by_target ON sessions_relation (target_id);

CREATE TABLE sessions_relation_memory (
    memory_id INTEGER NOT NULL REFERENCES sessions_memory (id),
    relation_id INTEGER NOT NULL REFERENCES sessions_relation (id),
    PRIMARY KEY (memory_id, relation_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_relation_memory_by_relation ON sessions_relation_memory (relation_id);

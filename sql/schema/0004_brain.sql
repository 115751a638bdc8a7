CREATE TABLE brain_memory (
    id TEXT NOT NULL,
    db TEXT NOT NULL,
    content TEXT NOT NULL,
    category TEXT NOT NULL,
    subcategory TEXT,
    tags TEXT,
    source TEXT NOT NULL,
    status TEXT NOT NULL,
    superseded_by TEXT,
    project_id TEXT,
    importance INTEGER NOT NULL,
    memory_type TEXT NOT NULL,
    last_accessed_at TEXT,
    access_count INTEGER NOT NULL,
    valid_from TEXT,
    valid_until TEXT,
    decay_score REAL NOT NULL,
    confidence REAL NOT NULL,
    has_embedding INTEGER NOT NULL,
    embedding_model TEXT,
    metadata TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (db, id)
) STRICT;

CREATE INDEX brain_memory_by_rank ON brain_memory (
    db, status, importance DESC, updated_at DESC, id, category, project_id, created_at
);
CREATE INDEX brain_memory_by_project ON brain_memory (db, project_id) WHERE project_id IS NOT NULL;
CREATE INDEX brain_memory_unembedded ON brain_memory (db) WHERE has_embedding = 0;

CREATE TABLE brain_entity (
    id TEXT NOT NULL,
    db TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    subtype TEXT,
    description TEXT,
    tags TEXT,
    aliases TEXT,
    status TEXT NOT NULL,
    mention_count INTEGER NOT NULL,
    first_mentioned TEXT,
    last_mentioned TEXT,
    has_embedding INTEGER NOT NULL,
    embedding_model TEXT,
    metadata TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (db, id)
) STRICT;

CREATE INDEX brain_entity_by_change ON brain_entity (db, status, updated_at DESC, id);
CREATE INDEX brain_entity_unembedded ON brain_entity (db) WHERE has_embedding = 0;

CREATE TABLE brain_link (
    id TEXT NOT NULL,
    db TEXT NOT NULL,
    source_type TEXT NOT NULL,
    source_id TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    relationship TEXT NOT NULL,
    strength REAL NOT NULL,
    context TEXT,
    bidirectional INTEGER NOT NULL,
    metadata TEXT,
    created_at TEXT NOT NULL,
    PRIMARY KEY (db, id),
    UNIQUE (db, source_id, source_type, target_type, target_id, relationship)
) STRICT;

CREATE INDEX brain_link_by_target ON brain_link (db, target_id, target_type, source_type, source_id, relationship);
CREATE INDEX brain_link_by_age ON brain_link (db, created_at DESC, id DESC);

CREATE TABLE brain_note (
    id TEXT NOT NULL,
    db TEXT NOT NULL,
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    note_type TEXT NOT NULL,
    summary TEXT,
    key_points TEXT,
    tags TEXT,
    category TEXT,
    parent_note_id TEXT,
    version INTEGER NOT NULL,
    previous_version_id TEXT,
    project_id TEXT,
    entity_id TEXT,
    word_count INTEGER NOT NULL,
    has_embedding INTEGER NOT NULL,
    embedding_model TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (db, id)
) STRICT;

CREATE INDEX brain_note_by_change ON brain_note (db, updated_at DESC, id);
CREATE INDEX brain_note_unembedded ON brain_note (db) WHERE has_embedding = 0;

CREATE TABLE brain_resource (
    id TEXT NOT NULL,
    db TEXT NOT NULL,
    title TEXT NOT NULL,
    url TEXT,
    resource_type TEXT,
    description TEXT,
    notes TEXT,
    key_takeaways TEXT,
    tags TEXT,
    category TEXT,
    status TEXT NOT NULL,
    quality_rating INTEGER,
    project_id TEXT,
    source_memory_id TEXT,
    domain TEXT,
    created_at TEXT NOT NULL,
    accessed_at TEXT,
    access_count INTEGER NOT NULL,
    has_embedding INTEGER NOT NULL,
    embedding_model TEXT,
    PRIMARY KEY (db, id)
) STRICT;

CREATE INDEX brain_resource_by_age ON brain_resource (db, created_at DESC, id);
CREATE INDEX brain_resource_unembedded ON brain_resource (db) WHERE has_embedding = 0;

CREATE TABLE brain_config (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    description TEXT,
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE brain_query (
    id TEXT PRIMARY KEY,
    db TEXT NOT NULL,
    query_text TEXT NOT NULL,
    query_source TEXT NOT NULL,
    result_count INTEGER NOT NULL,
    result_ids TEXT,
    execution_time_ms REAL NOT NULL,
    session_id TEXT,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX brain_query_by_age ON brain_query (created_at);

CREATE TABLE paths_memory (
    path TEXT PRIMARY KEY,
    content TEXT NOT NULL,
    content_size INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

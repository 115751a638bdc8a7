-- Contents in the order they came, so that those of one commit lie side by side; only paths are in the order of paths.
CREATE TABLE paths_row (
    path TEXT NOT NULL PRIMARY KEY,
    content TEXT NOT NULL,
    content_size INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

INSERT INTO paths_row (path, content, content_size, created_at, updated_at)
SELECT path, content, content_size, created_at, updated_at FROM paths_memory ORDER BY created_at, path;

DROP TABLE paths_memory;

ALTER TABLE paths_row RENAME TO paths_memory;

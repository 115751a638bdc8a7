-- Changes of files that are committed and not yet made.
CREATE TABLE notes_change (
    id INTEGER PRIMARY KEY,
    call TEXT NOT NULL,
    project TEXT NOT NULL,
    path TEXT NOT NULL,
    temporary TEXT,
    before TEXT,
    after TEXT
) STRICT;

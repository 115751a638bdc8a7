CREATE TABLE notes_file (
    project TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    doubtful INTEGER NOT NULL,
    memory_type TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (project, path)
) STRICT, WITHOUT ROWID;

CREATE INDEX notes_file_stamps ON notes_file (project, path, size, modified, changed);

CREATE INDEX notes_file_doubtful ON notes_file (project, path) WHERE doubtful = 1;

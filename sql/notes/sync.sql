-- name: stamps
-- The stamps that a scan is compared with, from an index without the content.
SELECT path, size, modified, changed FROM notes_file INDEXED BY notes_file_stamps WHERE project = :project;

-- name: unsettled
SELECT path FROM notes_file INDEXED BY notes_file_doubtful WHERE project = :project AND doubtful = 1;

-- name: unknown_projects
-- The files of all other projects.
SELECT project, path, size, modified, changed
FROM notes_file INDEXED BY notes_file_stamps
WHERE project NOT IN (SELECT value FROM json_each(:projects));

-- name: by_keys
-- The files of the given (project, path) pairs.
SELECT f.project, f.path, f.size, f.modified, f.changed, f.doubtful, f.content
FROM json_each(:keys) AS k
CROSS JOIN notes_file AS f ON f.project = k.value ->> 0 AND f.path = k.value ->> 1;

-- name: upsert
INSERT INTO notes_file (project, path, size, modified, changed, doubtful, memory_type, content)
VALUES (:project, :path, :size, :modified, :changed, :doubtful, :memory_type, :content)
ON CONFLICT (project, path) DO UPDATE SET
    size = excluded.size,
    modified = excluded.modified,
    changed = excluded.changed,
    doubtful = excluded.doubtful,
    memory_type = excluded.memory_type,
    content = excluded.content;

-- name: delete
DELETE FROM notes_file
WHERE (project, path) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:keys));

-- name: all_for_index
SELECT project, path, modified, content FROM notes_file;

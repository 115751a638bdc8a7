-- name: add
-- Rows are (call, project, path, temporary, before, after), in the order in which the files change.
INSERT INTO notes_change (call, project, path, temporary, before, after)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
FROM jsonb_each(:rows);

-- name: waiting
-- The changes of a project that are to be made, oldest first.
SELECT call, project, path, temporary, before, after FROM notes_change WHERE project = :project ORDER BY id;

-- name: is_waiting
SELECT EXISTS (SELECT 1 FROM notes_change WHERE project = :project);

-- name: set_stamp
-- The stamp of a file that was just put in its place proves nothing yet.
UPDATE notes_file SET size = :size, modified = :modified, changed = :changed, doubtful = 1
WHERE project = :project AND path = :path;

-- name: done
DELETE FROM notes_change WHERE project = :project AND call = :call;

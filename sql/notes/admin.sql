-- name: list
-- The files of a project, ordered by path.
SELECT path, modified, content FROM notes_file WHERE project = :project ORDER BY path;

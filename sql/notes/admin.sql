-- name: pages
-- The files of a project in the order of their paths.
SELECT path, modified, content FROM notes_file WHERE project = :project ORDER BY path;

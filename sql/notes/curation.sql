-- name: decisions
SELECT path, modified, substr(content, 1, 4000)
FROM notes_file
WHERE project = :project AND memory_type = 'architectural-decision'
ORDER BY modified DESC, path
LIMIT :limit;

-- name: page
-- In the order of their paths; a null type means every type.
SELECT project, path, modified, content
FROM notes_file
WHERE
    project IN (SELECT value FROM json_each(:projects))
    AND (:memory_type IS NULL OR memory_type = :memory_type)
ORDER BY project, path
LIMIT :limit;

-- name: found
-- The files of the given (project, path) pairs.
SELECT f.project, f.path, f.modified, f.content
FROM json_each(:keys) AS k
CROSS JOIN notes_file AS f ON f.project = k.value ->> 0 AND f.path = k.value ->> 1;

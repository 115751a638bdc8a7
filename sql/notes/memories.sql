-- name: page
-- Ordered by path; a null type means all types.
SELECT project, path, modified, content
FROM notes_file
WHERE
    project IN (SELECT value FROM json_each(:projects))
    AND (:memory_type IS NULL OR memory_type = :memory_type)
ORDER BY project, path
LIMIT :limit;

-- name: by_keys
-- The files of the given (project, path) pairs.
SELECT f.project, f.path, f.modified, f.content
FROM json_each(:keys) AS k
CROSS JOIN notes_file AS f ON f.project = k.value ->> 0 AND f.path = k.value ->> 1;

-- name: with_words
-- The files with any of these words of ASCII letters and digits, in any case.
SELECT project, path, modified, content
FROM notes_file
WHERE EXISTS (SELECT 1 FROM json_each(:words) AS w WHERE instr(lower(content), w.value) > 0);

-- name: sizes_below
-- Paths between :low and :high with their sizes in bytes.
SELECT m.path, v.size
FROM files_memory AS m
JOIN files_version AS v ON v.id = m.version
WHERE m.store = :store AND m.path >= :low AND m.path < :high;

-- name: has_below
SELECT 1 FROM files_memory WHERE store = :store AND path >= :low AND path < :high LIMIT 1;

-- name: first_of
-- The shortest of some paths that is a file.
SELECT path
FROM files_memory
WHERE store = :store AND path IN (SELECT value FROM json_each(:paths))
ORDER BY length(path)
LIMIT 1;

-- name: all_for_index
SELECT m.store, m.id, m.path, v.content
FROM files_memory AS m
JOIN files_version AS v ON v.id = m.version;

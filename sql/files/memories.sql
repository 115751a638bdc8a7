-- name: add_store
INSERT INTO files_store (id, name, description, metadata, created_at, updated_at)
VALUES (:id, :name, '', '{}', :now, :now)
ON CONFLICT (id) DO NOTHING;

-- name: get
SELECT id, path, content FROM files_memory WHERE store = :store AND path = :path;

-- name: sizes_below
-- Paths between :low and :high with their sizes in bytes.
SELECT path, size FROM files_memory WHERE store = :store AND path >= :low AND path < :high;

-- name: has_below
SELECT 1 FROM files_memory WHERE store = :store AND path >= :low AND path < :high LIMIT 1;

-- name: first_of
-- The shortest of some paths that is a file.
SELECT path
FROM files_memory
WHERE store = :store AND path IN (SELECT value FROM json_each(:paths))
ORDER BY length(path)
LIMIT 1;

-- name: add
INSERT INTO files_memory (id, store, path, content, size, created_at, updated_at)
VALUES (:id, :store, :path, :content, :size, :now, :now);

-- name: set_content
UPDATE files_memory SET content = :content, size = :size, updated_at = :now WHERE id = :id;

-- name: delete
-- A file, or all files below a directory.
DELETE FROM files_memory
WHERE store = :store AND (path = :path OR (path >= :low AND path < :high))
RETURNING id, path, content;

-- name: move
-- A file, or all files below a directory; returns them with their new paths.
UPDATE files_memory
SET path = :new_path || substr(path, length(:path) + 1), updated_at = :now
WHERE store = :store AND (path = :path OR (path >= :low AND path < :high))
RETURNING id, path, content;

-- name: all_for_index
SELECT store, id, path, content FROM files_memory;

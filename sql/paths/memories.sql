-- name: add
-- Returns the path only if it was free.
INSERT INTO paths_memory (path, content, content_size, created_at, updated_at)
VALUES (:path, :content, :content_size, :now, :now)
ON CONFLICT (path) DO NOTHING
RETURNING path;

-- name: add_many
-- Rows are (path, content, size). Without RETURNING: each returned row would release and take the GIL.
INSERT INTO paths_memory (path, content, content_size, created_at, updated_at)
SELECT value ->> 0, value ->> 1, value ->> 2, :now, :now FROM jsonb_each(:rows) WHERE true
ON CONFLICT (path) DO NOTHING;

-- name: replace
UPDATE paths_memory
SET content = :content, content_size = :content_size, updated_at = :now
WHERE path = :path;

-- name: move
UPDATE paths_memory SET path = :new_path, updated_at = :now WHERE path = :path;

-- name: content
SELECT content FROM paths_memory WHERE path = :path;

-- name: drop
-- Returns the content, for the history.
DELETE FROM paths_memory WHERE path = :path
RETURNING content;

-- name: clear_slice
-- Deletes the next memories, :limit or about :bytes of them and at least one; returns them, for the history.
DELETE FROM paths_memory
WHERE rowid IN (
    SELECT s.id
    FROM (
        SELECT m.rowid AS id, m.content_size, sum(m.content_size) OVER (ORDER BY m.rowid) AS total
        FROM (SELECT rowid, content_size FROM paths_memory ORDER BY rowid LIMIT :limit) AS m
    ) AS s
    WHERE s.total - s.content_size < :bytes
)
RETURNING path, content;

-- name: get
SELECT path, content, content_size, created_at, updated_at
FROM paths_memory
WHERE path = :path;

-- name: count
SELECT count(*) FROM paths_memory WHERE path >= :low AND path < :high;

-- name: page
SELECT path, content_size, created_at, updated_at
FROM paths_memory
WHERE path > :after AND path >= :low AND path < :high
ORDER BY path
LIMIT :limit;

-- name: all_for_index
SELECT path, content FROM paths_memory;

-- name: newest_in
-- The memories of a folder that were changed last, with the beginning of their content.
SELECT path, substr(content, 1, 1000)
FROM paths_memory
WHERE path >= :low AND path < :high
ORDER BY updated_at DESC, path
LIMIT :limit;

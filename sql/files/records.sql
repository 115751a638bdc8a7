-- fragment: memory
-- The columns of a memory with its version.
m.id, m.store, m.path, m.version, v.content, v.sha256, v.size, m.created_at, m.updated_at;

-- name: store
SELECT id, name, description, metadata, created_at, updated_at, archived_at FROM files_store WHERE id = :id;

-- name: add_store
INSERT INTO files_store (id, name, description, metadata, created_at, updated_at)
VALUES (:id, :name, :description, :metadata, :now, :now)
ON CONFLICT (id) DO NOTHING;

-- name: at_path
SELECT {memory}
FROM files_memory AS m
JOIN files_version AS v ON v.id = m.version
WHERE m.store = :store AND m.path = :path;

-- name: by_id
SELECT {memory}
FROM files_memory AS m
JOIN files_version AS v ON v.id = m.version
WHERE m.id = :id AND m.store = :store;

-- name: slice
-- The first memories at a path or below it, about :bytes of them and at least one.
SELECT {memory}
FROM (
    SELECT f.id, f.size, sum(f.size) OVER (ORDER BY f.path) AS total
    FROM (
        SELECT b.id, b.path, s.size
        FROM files_memory AS b
        JOIN files_version AS s ON s.id = b.version
        WHERE b.store = :store AND (b.path = :path OR (b.path >= :low AND b.path < :high))
        ORDER BY b.path
        LIMIT 1000
    ) AS f
) AS p
CROSS JOIN files_memory AS m ON m.id = p.id
CROSS JOIN files_version AS v ON v.id = m.version
WHERE p.total - p.size < :bytes;

-- name: in_the_way
-- The memory at a path, the nearest above it, or the first below it, but for the memory of this id.
SELECT id, path
FROM files_memory
WHERE
    store = :store
    AND (path IN (SELECT value FROM json_each(:paths)) OR (path >= :low AND path < :high))
    AND id IS NOT :besides
ORDER BY path
LIMIT 1;

-- name: put
INSERT INTO files_memory (id, store, path, version, created_at, updated_at)
VALUES (:id, :store, :path, :version, :now, :now)
ON CONFLICT (id) DO UPDATE SET path = excluded.path, version = excluded.version, updated_at = excluded.updated_at;

-- name: delete
DELETE FROM files_memory WHERE id = :id;

-- name: add_version
INSERT INTO files_version (id, memory, store, operation, path, content, sha256, size, created_by, created_at)
VALUES (:id, :memory, :store, :operation, :path, :content, :sha256, :size, :created_by, :now);

-- name: clear_slice
DELETE FROM paths_memory
WHERE path IN (
    SELECT s.path
    FROM (
        SELECT m.path, m.content_size, sum(m.content_size) OVER (ORDER BY m.created_at, m.path) AS total
        FROM (SELECT path, content_size, created_at FROM paths_memory ORDER BY created_at, path LIMIT :limit) AS m
    ) AS s
    WHERE s.total - s.content_size < :bytes
)
RETURNING path, content;

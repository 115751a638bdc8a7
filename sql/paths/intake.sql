-- name: all
-- The paths of all memories.
SELECT path FROM paths_memory ORDER BY path;

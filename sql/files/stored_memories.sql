-- name: below
-- The memories from :low to before :high, by path.
SELECT
    m.path, m.id, m.version, CASE WHEN :whole THEN v.content END AS content, v.sha256, v.size,
    m.created_at, m.updated_at
FROM files_memory AS m
JOIN files_version AS v ON v.id = m.version
WHERE m.store = :store AND m.path >= :low AND m.path < :high
ORDER BY m.path
LIMIT :limit;

-- name: children
-- The memories directly below a prefix of :prefix characters, and one prefix for all that lies deeper in a directory,
-- by path from :low on. Each step finds the first path after an item: no path has a control character, and 0 follows
-- the slash. Items have numbers, since PostgreSQL has no LIMIT inside a recursion.
WITH RECURSIVE
item (first, number) AS (
    SELECT min(path), 1 FROM files_memory WHERE store = :store AND path >= :low AND path < :high
    UNION ALL
    SELECT
        (
            SELECT min(m.path)
            FROM files_memory AS m
            WHERE
                m.store = :store
                AND m.path >= CASE instr(substr(i.first, :prefix + 1), '/')
                    WHEN 0 THEN i.first || char(1)
                    ELSE substr(i.first, 1, :prefix - 1 + instr(substr(i.first, :prefix + 1), '/')) || '0'
                END
                AND m.path < :high
        ),
        i.number + 1
    FROM item AS i
    WHERE i.first IS NOT NULL AND i.number < :limit
)
SELECT
    CASE f.deep WHEN 0 THEN f.first ELSE substr(f.first, 1, :prefix + f.deep) END AS path, m.id,
    coalesce(m.version, ''), CASE WHEN :whole THEN v.content END AS content, coalesce(v.sha256, ''),
    coalesce(v.size, 0), coalesce(m.created_at, ''), coalesce(m.updated_at, '')
FROM (SELECT first, instr(substr(first, :prefix + 1), '/') AS deep FROM item WHERE first IS NOT NULL) AS f
LEFT JOIN files_memory AS m ON m.store = :store AND m.path = f.first AND f.deep = 0
LEFT JOIN files_version AS v ON v.id = m.version
ORDER BY f.first;

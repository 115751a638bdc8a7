-- name: outdated_to
-- The last document with words of an earlier release; NULL where none is left.
SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'index_outdated_to';

-- name: set_outdated_to
UPDATE setting SET value = :last WHERE name = 'index_outdated_to';

-- name: finish
DELETE FROM setting WHERE name = 'index_outdated_to';

-- name: outdated
-- The last documents up to one: at most :limit, with about :bytes of text and at least one.
SELECT s.id, d.text, d.grams
FROM (
    SELECT p.id, p.size, sum(p.size) OVER (ORDER BY p.id DESC) AS total
    FROM (
        SELECT d.id, octet_length(d.text) AS size FROM doc AS d WHERE d.id <= :last ORDER BY d.id DESC LIMIT :limit
    ) AS p
) AS s
CROSS JOIN doc AS d ON d.id = s.id
WHERE s.total - s.size < :bytes
ORDER BY s.id DESC;

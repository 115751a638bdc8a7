-- name: outdated_to
-- The last document with words of an earlier release; NULL if none is left.
SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'index_outdated_to';

-- name: texts_outdated_to
-- The last document of a kind of which an earlier release indexed less; NULL if none is left.
SELECT CAST(value AS INTEGER) FROM setting WHERE name = 'index_texts_outdated_to';

-- name: set_texts_outdated_to
UPDATE setting SET value = :last WHERE name = 'index_texts_outdated_to';

-- name: finish_texts
DELETE FROM setting WHERE name = 'index_texts_outdated_to';

-- name: texts_outdated
-- The last documents of these kinds up to an id: at most :limit, with about :bytes of text and at least one.
SELECT s.id, s.space, s.key
FROM (
    SELECT p.id, p.space, p.key, p.size, sum(p.size) OVER (ORDER BY p.id DESC) AS total
    FROM (
        SELECT d.id, d.space, d.key, octet_length(d.text) + octet_length(d.grams) AS size
        FROM doc AS d
        WHERE
            d.id <= :last
            AND d.place IN (
                SELECT k.id FROM doc_place AS k
                WHERE (substr(k.space, 1, 6) = 'brain:' AND k.scope <> 'memory') OR k.space = 'sessions:entity'
            )
        ORDER BY d.id DESC
        LIMIT :limit
    ) AS p
) AS s
WHERE s.total - s.size < :bytes
ORDER BY s.id DESC;

-- name: set_outdated_to
UPDATE setting SET value = :last WHERE name = 'index_outdated_to';

-- name: finish
DELETE FROM setting WHERE name = 'index_outdated_to';

-- name: outdated
-- The last documents up to an id: at most :limit, with about :bytes of text and at least one.
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

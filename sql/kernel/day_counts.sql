-- name: add
-- Adds to the numbers of documents of (space, day) pairs; a negative number takes away.
INSERT INTO doc_day (space, day, documents)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2
FROM jsonb_each(:rows) AS r
WHERE true
ON CONFLICT (space, day) DO UPDATE
SET documents = doc_day.documents + excluded.documents;

-- name: differing
-- The number of (space, day) pairs whose number is not that of the documents.
SELECT count(*)
FROM (
    SELECT p.space, substr(d.updated_at, 1, 10) AS day, count(*) AS documents
    FROM doc AS d INDEXED BY doc_by_time
    JOIN doc_place AS p ON p.id = d.place
    GROUP BY p.space, substr(d.updated_at, 1, 10)
) AS c
FULL JOIN doc_day AS k ON k.space = c.space AND k.day = c.day
WHERE coalesce(c.documents, 0) <> coalesce(k.documents, 0);

-- name: clear
DELETE FROM doc_day;

-- name: rebuild
INSERT INTO doc_day (space, day, documents)
SELECT p.space, substr(d.updated_at, 1, 10), count(*)
FROM doc AS d INDEXED BY doc_by_time
JOIN doc_place AS p ON p.id = d.place
GROUP BY p.space, substr(d.updated_at, 1, 10);

-- name: total
SELECT coalesce(sum(documents), 0) FROM doc_day;

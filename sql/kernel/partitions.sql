-- name: by_pairs
SELECT p.id, p.space, p.scope
FROM json_each(:pairs) AS w
CROSS JOIN doc_place AS p ON p.space = w.value ->> 0 AND p.scope = w.value ->> 1;

-- name: add
INSERT INTO doc_place (space, scope)
SELECT value ->> 0, value ->> 1 FROM json_each(:pairs) WHERE true
ON CONFLICT (space, scope) DO NOTHING;

-- name: matching
-- A null scope stands for every scope of the space.
SELECT p.id
FROM json_each(:pairs) AS w
CROSS JOIN doc_place AS p ON p.space = w.value ->> 0 AND p.scope = w.value ->> 1
UNION ALL
SELECT p.id
FROM json_each(:pairs) AS w
CROSS JOIN doc_place AS p ON p.space = w.value ->> 0
WHERE w.value ->> 1 IS NULL;

-- name: of_dialects
-- A null parameter excludes nothing.
SELECT p.space, p.scope
FROM doc_place AS p
WHERE
    (:spaces IS NULL OR p.space IN (SELECT value FROM json_each(:spaces)))
    AND {of_dialects}
    AND (:scopes IS NULL OR p.scope IN (SELECT value FROM json_each(:scopes)));

-- name: sizes
-- The number of documents of each partition, counted up to a limit: more make no difference.
SELECT p.value, (SELECT count(*) FROM (SELECT 1 FROM doc AS d WHERE d.place = p.value LIMIT :limit) AS counted)
FROM json_each(:partitions) AS p;

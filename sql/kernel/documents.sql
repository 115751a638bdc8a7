-- name: by_ids
-- With the first place that a document names and that has changed since, in words.
SELECT
    d.id, d.space, d.key, p.scope, d.text, d.dialect, d.tool, d.actor, d.created_at, d.updated_at, f.rule,
    (
        SELECT w.state || ': ' || w.path || CASE
            WHEN w.name <> '' THEN ' ' || w.name
            WHEN w.line > 0 THEN ' ' || CAST(w.line AS TEXT)
            ELSE ''
        END
        FROM doc_witness AS w
        WHERE w.doc = d.id AND w.state <> '' AND d.updated_at <= w.at
        ORDER BY w.path, w.name, w.line
        LIMIT 1
    ) AS stale
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value
JOIN doc_place AS p ON p.id = d.place
LEFT JOIN doc_flag AS f ON f.doc = d.id;

-- name: seen
SELECT d.id
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value;

-- name: put_since
-- The documents put after another, or put again after a vector.
SELECT d.id FROM doc AS d WHERE d.id > :doc
UNION
SELECT v.doc FROM doc_vector AS v WHERE v.id > :vector;

-- name: short_since
-- The documents of a space put after another, without those of long texts.
SELECT d.id, d.key, d.text FROM doc AS d
WHERE d.id > :doc AND d.space = :space AND length(d.text) <= 500
ORDER BY d.id;

-- name: ids_of
-- The documents of the given (space, key) pairs, in that order.
SELECT d.id
FROM json_each(:keys) AS k
CROSS JOIN doc AS d ON d.space = k.value ->> 0 AND d.key = k.value ->> 1;

-- name: newest
-- The documents last changed first; null actor or partitions exclude nothing.
SELECT d.id
FROM doc AS d INDEXED BY doc_by_time
WHERE
    d.updated_at >= :after AND d.updated_at < :before
    AND (:actor IS NULL OR d.actor = :actor)
    AND (:partitions IS NULL OR d.place IN (SELECT value FROM json_each(:partitions)))
ORDER BY d.updated_at DESC, d.id DESC
LIMIT :limit;

-- name: in_folder
-- Of the documents without a scope in these spaces, those whose keys begin with the folder; all spaces for null.
SELECT d.id
FROM doc_place AS p
CROSS JOIN doc AS d ON d.space = p.space AND d.key >= :folder AND d.key < :end AND d.place = p.id
WHERE p.scope = '' AND p.space IN (SELECT value FROM json_each(:spaces))
LIMIT :limit;

-- name: last_id
-- The largest document id ever assigned. doc.id is AUTOINCREMENT, so that no id is assigned twice.
SELECT seq FROM sqlite_sequence WHERE name = 'doc';

-- name: count
-- A null scope stands for every scope of the space.
SELECT
    (
        SELECT count(*)
        FROM json_each(:pairs) AS w
        CROSS JOIN doc_place AS p ON p.space = w.value ->> 0 AND p.scope = w.value ->> 1
        CROSS JOIN doc AS d ON d.place = p.id
    ) + (
        SELECT count(*)
        FROM json_each(:pairs) AS w
        CROSS JOIN doc_place AS p ON p.space = w.value ->> 0
        CROSS JOIN doc AS d ON d.place = p.id
        WHERE w.value ->> 1 IS NULL
    );

-- name: by_actor
-- INDEXED BY makes the statement fail rather than scan if the covering index is gone (https://sqlite.org/lang_indexedby.html).
SELECT d.id, d.place
FROM doc AS d INDEXED BY doc_by_actor
WHERE d.actor = :actor AND d.updated_at >= :after AND d.updated_at < :before
LIMIT :limit;

-- name: by_time
SELECT d.id, d.place
FROM doc AS d INDEXED BY doc_by_time
WHERE d.updated_at >= :after AND d.updated_at < :before
LIMIT :limit;

-- name: partitions_by_pairs
SELECT p.id, p.space, p.scope
FROM json_each(:pairs) AS w
CROSS JOIN doc_place AS p ON p.space = w.value ->> 0 AND p.scope = w.value ->> 1;

-- name: add_partitions
INSERT INTO doc_place (space, scope)
SELECT value ->> 0, value ->> 1 FROM json_each(:pairs) WHERE true
ON CONFLICT (space, scope) DO NOTHING;

-- name: matching_partitions
-- A null scope stands for every scope of the space.
SELECT p.id
FROM json_each(:pairs) AS w
CROSS JOIN doc_place AS p ON p.space = w.value ->> 0 AND p.scope = w.value ->> 1
UNION ALL
SELECT p.id
FROM json_each(:pairs) AS w
CROSS JOIN doc_place AS p ON p.space = w.value ->> 0
WHERE w.value ->> 1 IS NULL;

-- name: partitions_of_dialects
-- A null parameter excludes nothing.
SELECT p.space, p.scope
FROM doc_place AS p
WHERE
    (:spaces IS NULL OR p.space IN (SELECT value FROM json_each(:spaces)))
    AND {of_dialects}
    AND (:scopes IS NULL OR p.scope IN (SELECT value FROM json_each(:scopes)));

-- name: partition_sizes
-- The number of documents of each partition, counted up to a limit: more make no difference.
SELECT p.value, (SELECT count(*) FROM (SELECT 1 FROM doc AS d WHERE d.place = p.value LIMIT :limit) AS counted)
FROM json_each(:partitions) AS p;

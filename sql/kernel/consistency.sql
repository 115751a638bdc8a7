-- name: rebuild_full_text
INSERT INTO doc_fts (doc_fts) VALUES ('rebuild');

-- name: rebuild_parts
INSERT INTO doc_part (doc_part) VALUES ('rebuild');

-- name: orphans
-- The ids of vectors without a document, or with a document in another partition.
SELECT v.doc
FROM doc_vector AS v
WHERE NOT EXISTS (SELECT 1 FROM doc AS d WHERE d.id = v.doc AND d.place = v.place);

-- name: count_docs
SELECT count(*) FROM doc;

-- name: count_docs_upto
SELECT count(*) FROM doc WHERE id <= :doc;

-- name: pending
-- The first documents after an id that have no vector of the given model: at most :limit, with about :bytes of text and
-- at least one.
SELECT d.id, d.text
FROM (
    SELECT p.id, p.size, sum(p.size) OVER (ORDER BY p.id) AS total
    FROM (
        SELECT d.id, octet_length(d.text) AS size
        FROM doc AS d
        LEFT JOIN doc_vector AS v ON v.doc = d.id
        WHERE d.id > :after AND (v.model IS NOT :model OR v.doc IS NULL)
        ORDER BY d.id
        LIMIT :limit
    ) AS p
) AS s
CROSS JOIN doc AS d ON d.id = s.id
WHERE s.total - s.size < :bytes
ORDER BY d.id;

-- name: documents_after
-- The first documents of a range: at most :limit, with about :bytes of text and at least one.
SELECT d.id, d.text
FROM (
    SELECT p.id, p.size, sum(p.size) OVER (ORDER BY p.id) AS total
    FROM (
        SELECT d.id, octet_length(d.text) AS size
        FROM doc AS d
        WHERE d.id > :after AND d.id <= :upto
        ORDER BY d.id
        LIMIT :limit
    ) AS p
) AS s
CROSS JOIN doc AS d ON d.id = s.id
WHERE s.total - s.size < :bytes
ORDER BY d.id;

-- name: set_embedded
-- How far a reindex has come: two documents, a vector, and the identity of the model, with blanks between them.
INSERT INTO setting (name, value) VALUES ('reindex_embedded', :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: embedded
SELECT value FROM setting WHERE name = 'reindex_embedded';

-- name: finish_embedding
DELETE FROM setting WHERE name = 'reindex_embedded';

-- name: last_vector
SELECT coalesce(max(id), 0) FROM doc_vector;

-- name: count_pending
SELECT count(*)
FROM doc AS d
LEFT JOIN doc_vector AS v ON v.doc = d.id
WHERE v.model IS NOT :model OR v.doc IS NULL;

-- name: count_of_other_models
-- The documents with a vector of another model that was configured before.
SELECT count(*)
FROM doc AS d
INNER JOIN doc_vector AS v ON v.doc = d.id
INNER JOIN doc_model AS m ON m.id = v.model
WHERE v.model IS NOT :model;

-- name: documents
-- The documents of (space, key) pairs.
SELECT d.space, d.key, d.text, d.grams
FROM json_each(:keys) AS k
CROSS JOIN doc AS d ON d.space = k.value ->> 0 AND d.key = k.value ->> 1;

-- name: keys_of_dialect
-- The dialect of a space is the part before its first colon.
SELECT d.space, d.key
FROM doc_place AS p
CROSS JOIN doc AS d ON d.place = p.id
WHERE substr(p.space, 1, instr(p.space || ':', ':') - 1) = :dialect;

-- name: trees
-- The tables and indexes of the file, with the root page of each.
SELECT name, type, rootpage, coalesce(instr(upper(sql), 'WITHOUT ROWID') > 0, 0)
FROM sqlite_schema
WHERE rootpage > 0;

-- name: page_owner
-- The table or index that a page belongs to.
SELECT name FROM dbstat WHERE pageno = :page LIMIT 1;

-- name: outdated_to
-- The last document that an earlier release indexed otherwise, by the setting that keeps it; NULL if none is left.
SELECT CAST(value AS INTEGER) FROM setting WHERE name = :setting;

-- name: set_outdated_to
UPDATE setting SET value = :last WHERE name = :setting;

-- name: finish_outdated
DELETE FROM setting WHERE name = :setting;

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
                WHERE
                    substr(k.space, 1, 6) = 'brain:'
                    OR substr(k.space, 1, 7) = 'scopes:'
                    OR k.space IN ('sessions', 'sessions:entity')
            )
        ORDER BY d.id DESC
        LIMIT :limit
    ) AS p
) AS s
WHERE s.total - s.size < :bytes
ORDER BY s.id DESC;

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

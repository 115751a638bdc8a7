-- name: check_full_text
-- Fails where the full-text index differs from the documents (rank 1 compares with the content table).
INSERT INTO doc_fts (doc_fts, rank) VALUES ('integrity-check', 1);

-- name: rebuild_full_text
INSERT INTO doc_fts (doc_fts) VALUES ('rebuild');

-- name: check_parts
INSERT INTO doc_part (doc_part, rank) VALUES ('integrity-check', 1);

-- name: rebuild_parts
INSERT INTO doc_part (doc_part) VALUES ('rebuild');

-- name: orphans
-- The ids of vectors without a document, or with one in another partition.
SELECT v.doc
FROM doc_vector AS v
WHERE NOT EXISTS (SELECT 1 FROM doc AS d WHERE d.id = v.doc AND d.place = v.place);

-- name: log_all_vectors_deleted
INSERT INTO doc_gone (vector) SELECT coalesce(max(id), 0) FROM doc_vector;

-- name: delete_all_vectors
DELETE FROM doc_vector;

-- name: count_docs
SELECT count(*) FROM doc;

-- name: pending
-- The first documents without a vector of the given model: at most :limit, with about :bytes of text and at least one.
SELECT d.id, d.text
FROM (
    SELECT p.id, p.size, sum(p.size) OVER (ORDER BY p.id) AS total
    FROM (
        SELECT d.id, octet_length(d.text) AS size
        FROM doc AS d
        LEFT JOIN doc_vector AS v ON v.doc = d.id
        WHERE v.model IS NOT :model OR v.doc IS NULL
        ORDER BY d.id
        LIMIT :limit
    ) AS p
) AS s
CROSS JOIN doc AS d ON d.id = s.id
WHERE s.total - s.size < :bytes
ORDER BY d.id;

-- name: count_pending
SELECT count(*)
FROM doc AS d
LEFT JOIN doc_vector AS v ON v.doc = d.id
WHERE v.model IS NOT :model OR v.doc IS NULL;

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
SELECT name, type, rootpage, COALESCE(sql LIKE '%WITHOUT ROWID%', 0)
FROM sqlite_schema
WHERE rootpage > 0;

-- name: page_owner
-- The table or index that a page belongs to.
SELECT name FROM dbstat WHERE pageno = :page LIMIT 1;

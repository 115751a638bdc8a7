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
-- Documents without a vector of the given model.
SELECT d.id, d.text
FROM doc AS d
LEFT JOIN doc_vector AS v ON v.doc = d.id
WHERE v.model IS NOT :model OR v.doc IS NULL
ORDER BY d.id
LIMIT :limit;

-- name: count_pending
SELECT count(*)
FROM doc AS d
LEFT JOIN doc_vector AS v ON v.doc = d.id
WHERE v.model IS NOT :model OR v.doc IS NULL;

-- name: documents_in
SELECT key, text, grams FROM doc WHERE space = :space;

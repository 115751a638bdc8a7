-- name: match_with_tf
-- The newest rows that match, with their term frequencies (`kernel/search/bm25.py`); null flags stand for all documents.
SELECT rowid, match_tf(doc_fts, :skip)
FROM doc_fts
WHERE doc_fts MATCH :query AND (:flags IS NULL OR substr(:flags, rowid + 1, 1) = x'01')
ORDER BY rowid DESC
LIMIT :limit;

-- name: match_with_tf_in
-- The same of documents that are there, null stands for all partitions. Of partitions that hold most documents comparing
-- rows is cheaper than more postings.
SELECT f.rowid, match_tf(doc_fts, :skip)
FROM doc_fts AS f
CROSS JOIN doc AS d ON d.id = f.rowid
WHERE
    f.doc_fts MATCH :query
    AND (:flags IS NULL OR substr(:flags, f.rowid + 1, 1) = x'01')
    AND (:partitions IS NULL OR d.place IN (SELECT value FROM json_each(:partitions)))
ORDER BY f.rowid DESC
LIMIT :limit;

-- name: match_with_tf_of
-- The same of the given documents.
SELECT f.rowid, match_tf(doc_fts, 0)
FROM json_each(:ids) AS i
CROSS JOIN doc_fts AS f ON f.rowid = i.value
WHERE f.doc_fts MATCH :query;

-- name: newest_by_bm25
-- The best of the newest rows that match, by FTS5's rank, for which it counts the rows of every term first: cheap in a
-- small index. Null is no number, which the averages of a damaged index make.
SELECT id, score
FROM (
    SELECT rowid AS id, coalesce(-bm25(doc_fts, 1.0, 1.0, 0.0), 0.0) AS score
    FROM doc_fts
    WHERE doc_fts MATCH :query AND (:flags IS NULL OR substr(:flags, rowid + 1, 1) = x'01')
    ORDER BY rowid DESC
    LIMIT :newest
)
ORDER BY score DESC, id
LIMIT :best;

-- name: match_by_bm25
-- The weight 0.0 keeps partition terms out of the rank; FTS5's bm25() is negative, smaller is better.
SELECT rowid, coalesce(-bm25(doc_fts, 1.0, 1.0, 0.0), 0.0) AS score
FROM doc_fts
WHERE doc_fts MATCH :query
ORDER BY score DESC;

-- name: match_by_bm25_in
-- The same of documents that are there, null stands for all partitions.
SELECT f.rowid, coalesce(-bm25(doc_fts, 1.0, 1.0, 0.0), 0.0) AS score
FROM doc_fts AS f
CROSS JOIN doc AS d ON d.id = f.rowid
WHERE f.doc_fts MATCH :query AND (:partitions IS NULL OR d.place IN (SELECT value FROM json_each(:partitions)))
ORDER BY score DESC;

-- name: document_frequencies
SELECT s.value, t.doc
FROM json_each(:stems) AS s
CROSS JOIN doc_term AS t ON t.term = s.value;

-- name: frequencies_alike
-- As document_frequencies for many stems of which most lie in a range: that is read in one pass, with its other words.
SELECT s.value, t.doc
FROM json_each(:stems) AS s
CROSS JOIN doc_term AS t ON t.term = s.value
WHERE s.value NOT BETWEEN :first AND :last
UNION ALL
SELECT t.term, t.doc
FROM doc_term AS t
WHERE t.term BETWEEN :first AND :last;

-- name: holding_parts
-- The newest of the short texts that hold a part of a word, null stands for all partitions.
SELECT d.id, d.text
FROM doc AS d
WHERE
    (:partitions IS NULL OR d.place IN (SELECT value FROM json_each(:partitions)))
    AND octet_length(d.text) <= 2000
    AND EXISTS (SELECT 1 FROM json_each(:parts) AS p WHERE instr(lower(d.text), CAST(p.value AS text)) > 0)
ORDER BY d.id DESC
LIMIT 50;

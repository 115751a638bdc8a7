-- name: match_with_tf
-- The newest rows that match, with what `kernel/search/bm25.py` tells of each.
SELECT rowid, match_tf(doc_fts, :skip) FROM doc_fts WHERE doc_fts MATCH :query ORDER BY rowid DESC LIMIT :limit;

-- name: match_with_tf_in
-- The same in some places only, where these hold most of what there is.
SELECT f.rowid, match_tf(doc_fts, :skip)
FROM doc_fts AS f
CROSS JOIN doc AS d ON d.id = f.rowid
WHERE f.doc_fts MATCH :query AND d.place IN (SELECT value FROM json_each(:places))
ORDER BY f.rowid DESC
LIMIT :limit;

-- name: match_with_tf_of
-- The same of some rows only.
SELECT f.rowid, match_tf(doc_fts, 0)
FROM json_each(:ids) AS i
CROSS JOIN doc_fts AS f ON f.rowid = i.value
WHERE f.doc_fts MATCH :query;

-- name: texts
SELECT d.id, d.text, d.grams
FROM json_each(:places) AS p
CROSS JOIN doc AS d ON d.place = p.value;

-- name: match_by_bm25
SELECT rowid, -bm25(doc_fts, 1.0, 1.0, 0.0) AS score
FROM doc_fts
WHERE doc_fts MATCH :query
ORDER BY score DESC;

-- name: match_by_bm25_in
-- The same in some places only, for places that hold most of what there is.
SELECT f.rowid, -bm25(doc_fts, 1.0, 1.0, 0.0) AS score
FROM doc_fts AS f
CROSS JOIN doc AS d ON d.id = f.rowid
WHERE f.doc_fts MATCH :query AND d.place IN (SELECT value FROM json_each(:places))
ORDER BY score DESC;

-- name: frequencies
SELECT s.value, t.doc
FROM json_each(:stems) AS s
CROSS JOIN doc_term AS t ON t.term = s.value;

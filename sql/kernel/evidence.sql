-- name: model
SELECT id FROM doc_model WHERE identity = :identity;

-- name: lexical
SELECT rowid, -bm25(doc_fts, 1.0, 1.0, 0.0) AS score
FROM doc_fts
WHERE doc_fts MATCH :query
ORDER BY score DESC
LIMIT :limit;

-- name: lexical_in
-- The same in some places only, for places that hold most of what there is.
SELECT f.rowid, -bm25(doc_fts, 1.0, 1.0, 0.0) AS score
FROM doc_fts AS f
CROSS JOIN doc AS d ON d.id = f.rowid
WHERE f.doc_fts MATCH :query AND d.place IN (SELECT value FROM json_each(:places))
ORDER BY score DESC
LIMIT :limit;

-- name: lexical_each
-- The best of each place, for one reading of the index.
SELECT r.id, r.score, r.place
FROM (
    SELECT m.id, m.score, m.place, row_number() OVER (PARTITION BY m.place ORDER BY m.score DESC) AS nth
    FROM (
        SELECT d.id, d.place, -bm25(doc_fts, 1.0, 1.0, 0.0) AS score
        FROM doc_fts AS f
        CROSS JOIN doc AS d ON d.id = f.rowid
        WHERE f.doc_fts MATCH :query AND d.place IN (SELECT value FROM json_each(:places))
    ) AS m
) AS r
WHERE r.nth <= :limit
ORDER BY r.score DESC;

-- name: frequencies
SELECT s.value, t.doc
FROM json_each(:stems) AS s
CROSS JOIN doc_term AS t ON t.term = s.value;

-- name: matching
-- How many documents each full-text query finds.
SELECT q.value, (SELECT count(*) FROM doc_fts WHERE doc_fts MATCH q.value)
FROM json_each(:queries) AS q;

-- name: sketches
SELECT id, place, sketch FROM doc_vector WHERE id > :after AND model = :model AND scale > 0 ORDER BY id;

-- name: score_vectors
-- Ranks first and looks up names after, so that only the best cost a second look-up.
SELECT d.id, d.space, d.key, 1.0 - s.distance
FROM (
    SELECT v.doc, vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) AS distance
    FROM json_each(:ids) AS i
    CROSS JOIN doc_vector AS v ON v.id = i.value
    WHERE v.model = :model AND v.scale > 0
    ORDER BY distance
    LIMIT :limit
) AS s
CROSS JOIN doc AS d ON d.id = s.doc;

-- name: live
-- Those of the given vectors that are there, or are younger than this snapshot.
SELECT i.value
FROM json_each(:ids) AS i
LEFT JOIN doc_vector AS v ON v.id = i.value AND v.model = :model AND v.scale > 0
WHERE v.id IS NOT NULL OR i.value > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'doc_vector');

-- name: score_docs
SELECT d.id, d.space, d.key, 1.0 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector))
FROM json_each(:ids) AS i
CROSS JOIN doc_vector AS v ON v.doc = i.value
CROSS JOIN doc AS d ON d.id = v.doc
WHERE v.model = :model AND v.scale > 0
LIMIT :limit;

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

-- name: score_docs
-- Nearest first, so that of many the nearest are kept.
SELECT d.id, d.space, d.key, 1.0 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) AS similarity
FROM json_each(:ids) AS i
CROSS JOIN doc_vector AS v ON v.doc = i.value
CROSS JOIN doc AS d ON d.id = v.doc
WHERE v.model = :model AND v.scale > 0
ORDER BY similarity DESC
LIMIT :limit;

-- name: score_partitions
-- Every vector of small places.
SELECT d.id, d.space, d.key, 1.0 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) AS similarity
FROM json_each(:ids) AS p
CROSS JOIN doc AS d ON d.place = p.value
CROSS JOIN doc_vector AS v ON v.doc = d.id
WHERE v.model = :model AND v.scale > 0
ORDER BY similarity DESC
LIMIT :limit;

-- name: last_vector_id
-- The largest number ever given to a vector.
SELECT max(seq) FROM sqlite_sequence WHERE name = 'doc_vector';

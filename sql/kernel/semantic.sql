-- name: score_vectors
-- Ranks first and joins documents afterwards, so that only the best rows cost a second look-up.
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
SELECT d.id, d.space, d.key, 1.0 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) AS similarity
FROM json_each(:ids) AS i
CROSS JOIN doc_vector AS v ON v.doc = i.value
CROSS JOIN doc AS d ON d.id = v.doc
WHERE v.model = :model AND v.scale > 0
ORDER BY similarity DESC
LIMIT :limit;

-- name: score_partitions
-- An exact scan, for small partitions.
SELECT d.id, d.space, d.key, 1.0 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) AS similarity
FROM json_each(:ids) AS p
CROSS JOIN doc AS d ON d.place = p.value
CROSS JOIN doc_vector AS v ON v.doc = d.id
WHERE v.model = :model AND v.scale > 0
ORDER BY similarity DESC
LIMIT :limit;

-- name: last_vector_id
-- The largest vector id ever assigned.
SELECT max(seq) FROM sqlite_sequence WHERE name = 'doc_vector';

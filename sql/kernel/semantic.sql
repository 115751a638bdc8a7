-- name: score_vectors
SELECT v.doc, 1.0 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) AS similarity
FROM json_each(:ids) AS i
CROSS JOIN doc_vector AS v ON v.id = i.value
WHERE v.model = :model AND v.scale > 0
ORDER BY similarity DESC
LIMIT :limit;

-- name: score_docs
SELECT v.doc, 1.0 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) AS similarity
FROM json_each(:ids) AS i
CROSS JOIN doc_vector AS v ON v.doc = i.value
WHERE v.model = :model AND v.scale > 0
ORDER BY similarity DESC
LIMIT :limit;

-- name: score_partitions
-- An exact scan, for small partitions.
SELECT v.doc, 1.0 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) AS similarity
FROM json_each(:ids) AS p
CROSS JOIN doc AS d ON d.place = p.value
CROSS JOIN doc_vector AS v ON v.doc = d.id
WHERE v.model = :model AND v.scale > 0
ORDER BY similarity DESC
LIMIT :limit;

-- name: vectors
SELECT v.doc, v.vector, v.scale
FROM doc_vector AS v
WHERE v.doc IN (SELECT value FROM json_each(:ids)) AND v.model = :model AND v.scale > 0;

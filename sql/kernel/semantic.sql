-- name: vectors
SELECT v.doc, v.vector, v.scale
FROM json_each(:ids) AS i
CROSS JOIN doc_vector AS v ON v.id = i.value
WHERE v.model = :model AND v.scale > 0;

-- name: vectors_of_docs
SELECT v.doc, v.vector, v.scale
FROM json_each(:ids) AS i
CROSS JOIN doc_vector AS v ON v.doc = i.value
WHERE v.model = :model AND v.scale > 0;

-- name: vectors_of_partitions
-- All vectors of small partitions.
SELECT v.doc, v.vector, v.scale
FROM json_each(:ids) AS p
CROSS JOIN doc AS d ON d.place = p.value
CROSS JOIN doc_vector AS v ON v.doc = d.id
WHERE v.model = :model AND v.scale > 0;

-- name: documents
SELECT d.id, d.space, d.key
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value;

-- name: last_vector_id
-- The largest vector id ever assigned.
SELECT max(seq) FROM sqlite_sequence WHERE name = 'doc_vector';

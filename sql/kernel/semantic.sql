-- name: vectors
SELECT v.doc, v.vector, v.scale
FROM doc_vector AS v
WHERE v.doc IN (SELECT value FROM json_each(:ids)) AND v.model = :model AND v.scale > 0;

-- name: vectors_by_id
SELECT v.doc, v.vector, v.scale
FROM doc_vector AS v
WHERE v.id IN (SELECT value FROM json_each(:ids)) AND v.model = :model AND v.scale > 0;

-- name: vectors_in
-- Those of some partitions.
SELECT v.doc, v.vector, v.scale
FROM json_each(:ids) AS p
CROSS JOIN doc AS d ON d.place = p.value
CROSS JOIN doc_vector AS v ON v.doc = d.id
WHERE v.model = :model AND v.scale > 0;

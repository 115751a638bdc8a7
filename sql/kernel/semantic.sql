-- name: vectors
SELECT v.doc, v.vector, v.scale
FROM doc_vector AS v
WHERE v.doc IN (SELECT value FROM json_each(:ids)) AND v.model = :model AND v.scale > 0;

-- name: score
-- The nearest of some vectors, of those of documents and of partitions, and of those after an id; null for `within`
-- stands for every partition.
SELECT v.doc, 1.0 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) AS similarity
FROM (
    SELECT value AS id FROM json_each(:vectors)
    UNION
    SELECT o.id FROM json_each(:docs) AS i CROSS JOIN doc_vector AS o ON o.doc = i.value
    UNION
    SELECT o.id
    FROM json_each(:partitions) AS p
    CROSS JOIN doc AS d ON d.place = p.value
    CROSS JOIN doc_vector AS o ON o.doc = d.id
    UNION
    SELECT o.id
    FROM doc_vector AS o
    WHERE o.id > :after AND (:within IS NULL OR o.place IN (SELECT value FROM json_each(:within)))
) AS s
CROSS JOIN doc_vector AS v ON v.id = s.id
WHERE v.model = :model AND v.scale > 0
ORDER BY similarity DESC, v.doc
LIMIT :limit;

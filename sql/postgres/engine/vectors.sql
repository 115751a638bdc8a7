-- name: candidates
-- As kernel.vectors.score, whose cosines are made in the process.
SELECT v.doc, v.vector
FROM (
    SELECT CAST(value AS bigint) AS id FROM json_each(:vectors)
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
WHERE v.model = :model AND v.scale > 0;

-- name: vectors_and_tokens
SELECT v.doc, v.vector, v.scale, v.tokens
FROM json_each(:ids) AS i
CROSS JOIN doc_vector AS v ON v.doc = i.value
WHERE v.model = :model AND v.scale > 0;

-- name: neighbours
-- Each document between the two before and the two after it in its partition; ids follow the order of insertion.
SELECT
    (SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id < d.id ORDER BY n.id DESC LIMIT 1 OFFSET 1),
    (SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id < d.id ORDER BY n.id DESC LIMIT 1),
    d.id,
    (SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 1),
    (SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 1 OFFSET 1)
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value;

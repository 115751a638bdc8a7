-- name: vectors_and_tokens
-- What is held of documents besides their text.
SELECT d.id, d.space, d.key, v.vector, v.tokens
FROM json_each(:ids) AS i
CROSS JOIN doc_vector AS v ON v.doc = i.value
CROSS JOIN doc AS d ON d.id = v.doc
WHERE v.model = :model AND v.scale > 0;

-- name: neighbours
-- Documents between the two before and the two after them in their place: numbers are given in the order of time.
SELECT
    (SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id < d.id ORDER BY n.id DESC LIMIT 1 OFFSET 1),
    (SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id < d.id ORDER BY n.id DESC LIMIT 1),
    d.id,
    (SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 1),
    (SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 1 OFFSET 1)
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value;

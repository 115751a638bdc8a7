-- name: pool
-- Each document between the two before and the two after it in its partition, 0 for none, its tokens,
-- and its vector; ids follow the order of insertion.
SELECT
    coalesce((SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id < d.id ORDER BY n.id DESC LIMIT 1 OFFSET 1), 0),
    coalesce((SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id < d.id ORDER BY n.id DESC LIMIT 1), 0),
    d.id,
    coalesce((SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 1), 0),
    coalesce((SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 1 OFFSET 1), 0),
    coalesce(v.tokens, x''), coalesce(v.vector, x''), coalesce(v.scale, 0.0)
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value
LEFT JOIN doc_vector AS v ON v.doc = d.id AND v.model = :model AND v.scale > 0;

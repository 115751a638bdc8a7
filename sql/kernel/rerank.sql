-- name: pool
-- Each document between the two before and the two after it in its partition, 0 for none, its tokens,
-- its vector, the bytes of its text and of the words beside it, and of a short question those of the text after it,
-- else 0; ids follow the order of insertion.
SELECT
    coalesce((SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id < d.id ORDER BY n.id DESC LIMIT 1 OFFSET 1), 0),
    coalesce((SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id < d.id ORDER BY n.id DESC LIMIT 1), 0),
    d.id,
    coalesce((SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 1), 0),
    coalesce((SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 1 OFFSET 1), 0),
    coalesce(v.tokens, x''), coalesce(v.vector, x''), coalesce(v.scale, 0.0),
    octet_length(d.text), octet_length(d.grams),
    CASE
        WHEN
            octet_length(d.text) <= 2000
            -- The last byte of each of these, without counting.
            AND hex(substr(CAST(d.text AS blob), -1)) IN ('3F', '9F')
            AND substr(d.text, length(d.text)) IN ('?', '？', '؟')
            THEN coalesce(
                (SELECT octet_length(n.text) FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 1), 0
            )
        ELSE 0
    END
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value
LEFT JOIN doc_vector AS v ON v.doc = d.id AND v.model = :model AND v.scale > 0;

-- name: bodies
-- The beginnings of texts, and of the words beside them.
SELECT d.id, substr(d.text, 1, :most), substr(d.grams, 1, :most)
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value;

-- name: pool
-- Each side of a document is read once.
SELECT
    coalesce(n.before [2], 0), coalesce(n.before [1], 0), n.id, coalesce(n.after [1], 0), coalesce(n.after [2], 0),
    coalesce(v.tokens, x''), coalesce(v.vector, x''), coalesce(v.scale, 0.0),
    n.size, n.beside,
    CASE WHEN n.asks THEN coalesce((SELECT octet_length(r.text) FROM doc AS r WHERE r.id = n.after [1]), 0) ELSE 0 END
FROM (
    SELECT
        d.id, octet_length(d.text) AS size, octet_length(d.grams) AS beside,
        octet_length(d.text) <= 2000 AND (d.text LIKE '%?' OR d.text LIKE '%？' OR d.text LIKE '%؟') AS asks,
        ARRAY(SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id < d.id ORDER BY n.id DESC LIMIT 2) AS before,
        ARRAY(SELECT n.id FROM doc AS n WHERE n.place = d.place AND n.id > d.id ORDER BY n.id LIMIT 2) AS after
    FROM (SELECT CAST(value AS bigint) AS id FROM json_each(:ids)) AS i
    CROSS JOIN LATERAL (SELECT id, place, text, grams FROM doc WHERE id = i.id OFFSET 0) AS d
    OFFSET 0
) AS n
LEFT JOIN doc_vector AS v ON v.doc = n.id AND v.model = :model AND v.scale > 0;

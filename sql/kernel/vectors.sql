-- name: model_id
SELECT id FROM doc_model WHERE identity = :identity;

-- name: add_model
INSERT INTO doc_model (identity, dimensions) VALUES (:identity, :dimensions)
RETURNING id;

-- name: insert
-- Rows are (doc, scale, start of its tokens, bytes of its tokens); each blob holds the values of all rows one after the
-- other. A document deleted meanwhile is left out.
INSERT INTO doc_vector (doc, model, place, scale, vector, sketch, tokens)
SELECT
    d.id, :model, d.place, r.value ->> 1,
    substr(:vectors, r.key * :vector_size + 1, :vector_size),
    substr(:sketches, r.key * :sketch_size + 1, :sketch_size),
    coalesce(substr(:tokens, r.value ->> 2, r.value ->> 3), x'') -- substr of an empty blob is NULL in SQLite
FROM jsonb_each(:rows) AS r
CROSS JOIN doc AS d ON d.id = r.value ->> 0
WHERE true
ON CONFLICT (doc) DO NOTHING;

-- name: log_deletions
INSERT INTO doc_gone (vector)
SELECT v.id FROM json_each(:ids) AS i CROSS JOIN doc_vector AS v ON v.doc = i.value;

-- name: delete
DELETE FROM doc_vector WHERE doc IN (SELECT value FROM json_each(:ids));

-- name: of_documents
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

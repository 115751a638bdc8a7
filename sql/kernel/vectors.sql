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

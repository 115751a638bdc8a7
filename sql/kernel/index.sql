-- name: by_keys
-- The documents of the given (space, key) pairs.
SELECT d.id, d.space, d.key, d.created_at
FROM json_each(:keys) AS k
CROSS JOIN doc AS d ON d.space = k.value ->> 0 AND d.key = k.value ->> 1;

-- name: in_scope
SELECT d.id, d.space, d.key, d.created_at
FROM doc_place AS p
JOIN doc AS d ON d.place = p.id
WHERE p.space = :space AND p.scope = :scope;

-- name: in_dialect
SELECT d.id, d.space, d.key, d.created_at
FROM doc_place AS p
JOIN doc AS d ON d.place = p.id
WHERE substr(p.space, 1, instr(p.space || ':', ':') - 1) = :dialect;

-- name: fts_delete
-- FTS5 with external content must be told the old values before they go.
INSERT INTO doc_fts (doc_fts, rowid, text, grams, place)
SELECT 'delete', d.id, d.text, d.grams, d.place
FROM json_each(:ids) AS i
CROSS JOIN doc_content AS d ON d.id = i.value;

-- name: log_vector_deletion
INSERT INTO doc_gone (vector)
SELECT v.id FROM json_each(:ids) AS i CROSS JOIN doc_vector AS v ON v.doc = i.value;

-- name: delete_vectors
DELETE FROM doc_vector WHERE doc IN (SELECT value FROM json_each(:ids));

-- name: delete_docs
DELETE FROM doc WHERE id IN (SELECT value FROM json_each(:ids));

-- name: last_doc_id
-- The largest document id ever given, so that ids are never used twice.
SELECT seq FROM sqlite_sequence WHERE name = 'doc';

-- name: insert_docs
INSERT INTO doc (id, space, key, place, text, grams, dialect, tool, actor, created_at, updated_at)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
    value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10
FROM json_each(:rows);

-- name: fts_insert
INSERT INTO doc_fts (rowid, text, grams, place)
SELECT d.id, d.text, d.grams, d.place
FROM json_each(:ids) AS i
CROSS JOIN doc_content AS d ON d.id = i.value;

-- name: insert_vectors
-- Rows are (doc, scale, start and length of its tokens); the blobs hold all of them, one after the other. A document
-- gone meanwhile is left out. A part of an empty blob is null to the engine.
INSERT INTO doc_vector (doc, model, place, scale, vector, sketch, tokens)
SELECT
    d.id, :model, d.place, r.value ->> 1,
    substr(:vectors, r.key * :vector_size + 1, :vector_size),
    substr(:sketches, r.key * :sketch_size + 1, :sketch_size),
    coalesce(substr(:tokens, r.value ->> 2, r.value ->> 3), x'') -- of an empty blob a part is NULL
FROM json_each(:rows) AS r
CROSS JOIN doc AS d ON d.id = r.value ->> 0
WHERE true
ON CONFLICT (doc) DO NOTHING;

-- name: set_provenance
UPDATE doc
SET dialect = :dialect, tool = :tool, actor = :actor, created_at = :created_at, updated_at = :updated_at
WHERE space = :space AND key = :key;

-- name: add_model
INSERT INTO doc_model (identity, dimensions) VALUES (:identity, :dimensions)
RETURNING id;

-- name: partitions
SELECT p.id, p.space, p.scope
FROM json_each(:pairs) AS w
CROSS JOIN doc_place AS p ON p.space = w.value ->> 0 AND p.scope = w.value ->> 1;

-- name: add_partitions
INSERT INTO doc_place (space, scope)
SELECT value ->> 0, value ->> 1 FROM json_each(:pairs) WHERE true
ON CONFLICT (space, scope) DO NOTHING;

-- name: partitions_matching
-- A null scope means every scope of the space.
SELECT p.id
FROM json_each(:pairs) AS w
CROSS JOIN doc_place AS p ON p.space = w.value ->> 0 AND p.scope = w.value ->> 1
UNION ALL
SELECT p.id
FROM json_each(:pairs) AS w
CROSS JOIN doc_place AS p ON p.space = w.value ->> 0
WHERE w.value ->> 1 IS NULL;

-- name: count
SELECT
    (
        SELECT count(*)
        FROM json_each(:pairs) AS w
        CROSS JOIN doc_place AS p ON p.space = w.value ->> 0 AND p.scope = w.value ->> 1
        CROSS JOIN doc AS d ON d.place = p.id
    ) + (
        SELECT count(*)
        FROM json_each(:pairs) AS w
        CROSS JOIN doc_place AS p ON p.space = w.value ->> 0
        CROSS JOIN doc AS d ON d.place = p.id
        WHERE w.value ->> 1 IS NULL
    );

-- name: keys_of
SELECT d.id, d.space, d.key
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value;

-- name: documents
SELECT d.id, d.space, d.key, p.scope, d.text, d.dialect, d.tool, d.actor, d.created_at, d.updated_at, f.rule
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value
JOIN doc_place AS p ON p.id = d.place
LEFT JOIN doc_flag AS f ON f.doc = d.id;

-- name: ids_of
-- The documents of the given (space, key) pairs, in that order.
SELECT d.id
FROM json_each(:keys) AS k
CROSS JOIN doc AS d ON d.space = k.value ->> 0 AND d.key = k.value ->> 1;

-- name: partitions_of
SELECT p.space, p.scope
FROM doc_place AS p
WHERE
    (:spaces IS NULL OR p.space IN (SELECT value FROM json_each(:spaces)))
    AND (
        :dialects IS NULL
        OR substr(p.space, 1, instr(p.space || ':', ':') - 1) IN (SELECT value FROM json_each(:dialects))
    )
    AND (:scope IS NULL OR p.scope = :scope);

-- name: by_actor
-- Documents of an actor and of some time, with their places; no more than so many.
SELECT d.id, d.place
FROM doc AS d INDEXED BY doc_by_actor
WHERE d.actor = :actor AND d.updated_at >= :after AND d.updated_at < :before
LIMIT :most;

-- name: by_time
-- The same of anybody.
SELECT d.id, d.place
FROM doc AS d INDEXED BY doc_by_time
WHERE d.updated_at >= :after AND d.updated_at < :before
LIMIT :most;

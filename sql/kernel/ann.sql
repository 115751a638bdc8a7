-- name: sealed_blocks
-- Each block holds a thousand vectors or so, so that a start reads few rows.
SELECT last, ids, docs, places, scales, CASE WHEN :exact THEN vectors ELSE sketches END
FROM doc_block
WHERE last > :after AND model = :model
ORDER BY last
LIMIT :limit;

-- name: vectors_after
-- Vectors of other models and zero vectors have no partition: their ids count as read, they are not used.
SELECT
    id, doc, CASE WHEN model = :model AND scale > 0 THEN place END, scale,
    CASE WHEN :exact THEN vector ELSE sketch END
FROM doc_vector
WHERE id > :after
ORDER BY id
LIMIT :limit;

-- name: block_after
-- The same with the sketch, and with the vector of a store that is compared exactly.
SELECT
    id, doc, CASE WHEN model = :model AND scale > 0 THEN place END, scale, sketch, CASE WHEN :exact THEN vector END
FROM doc_vector
WHERE id > :after
ORDER BY id
LIMIT :limit;

-- name: count_vectors
SELECT count(*) FROM doc_vector;

-- name: deletions_after
-- Row 0, if it exists, comes first: its `vector` is the id of the last deletion that is no longer in the log.
SELECT id, vector FROM doc_gone WHERE id = 0
UNION ALL
SELECT id, vector FROM doc_gone WHERE id > :after
ORDER BY id;

-- name: last_sealed_id
-- The last vector in a block, if at least `size` vectors are in none.
SELECT b.last
FROM (SELECT coalesce((SELECT last FROM doc_block ORDER BY last DESC LIMIT 1), 0) AS last) AS b
WHERE (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'doc_vector') - b.last >= :size;

-- name: add_block
INSERT INTO doc_block (last, model, ids, docs, places, scales, sketches, vectors)
VALUES (:last, :model, :ids, :docs, :places, :scales, :sketches, :vectors)
ON CONFLICT (last) DO UPDATE
SET
    model = excluded.model, ids = excluded.ids, docs = excluded.docs, places = excluded.places,
    scales = excluded.scales, sketches = excluded.sketches, vectors = excluded.vectors;

-- name: delete_blocks_between
-- The blocks whose rows a rewritten block has taken over.
DELETE FROM doc_block WHERE last > :after AND last < :before;

-- name: vectors_upto
SELECT id FROM doc_vector WHERE id <= :upto ORDER BY id LIMIT :limit;

-- name: log_vectors_deleted
INSERT INTO doc_gone (vector) SELECT value FROM json_each(:ids);

-- name: delete_vectors
DELETE FROM doc_vector WHERE id IN (SELECT value FROM json_each(:ids));

-- name: delete_block_upto
-- The first block, if it ends before a vector.
DELETE FROM doc_block WHERE last = (SELECT min(b.last) FROM doc_block AS b WHERE b.last <= :upto);

-- name: first_deletion_after
-- The first deletion in the log of a vector after this vector.
SELECT coalesce(min(id), 0) FROM doc_gone WHERE id > 0 AND vector > :vector;

-- name: delete_blocks
DELETE FROM doc_block;

-- name: last_deletion_id
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'doc_gone';

-- name: count_deletions
SELECT count(*) FROM doc_gone WHERE id > 0;

-- name: trim_deletions
DELETE FROM doc_gone WHERE id IN (SELECT id FROM doc_gone WHERE id > 0 AND id <= :upto LIMIT :limit);

-- name: set_deletion_floor
INSERT INTO doc_gone (id, vector) VALUES (0, :upto)
ON CONFLICT (id) DO UPDATE SET vector = excluded.vector;

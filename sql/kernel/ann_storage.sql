-- name: sealed_blocks
-- Many sketches in one row, for whoever reads them all.
SELECT last, ids, places, words FROM doc_sketch WHERE last > :after AND model = :model ORDER BY last LIMIT :limit;

-- name: vectors_after
-- The vectors after one; a place only where there is a sketch of this model to compare.
SELECT id, CASE WHEN model = :model AND scale > 0 THEN place END, sketch
FROM doc_vector
WHERE id > :after
ORDER BY id
LIMIT :limit;

-- name: deletions_after
-- The deletions after one; the first row tells up to which they are kept no more, where some are not.
SELECT id, vector FROM doc_gone WHERE id = 0
UNION ALL
SELECT id, vector FROM doc_gone WHERE id > :after
ORDER BY id;

-- name: last_sealed_id
-- The last vector in a block, where many are in none.
SELECT b.last
FROM (SELECT coalesce((SELECT last FROM doc_sketch ORDER BY last DESC LIMIT 1), 0) AS last) AS b
WHERE (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'doc_vector') - b.last >= :size;

-- name: add
INSERT INTO doc_sketch (last, model, ids, places, words) VALUES (:last, :model, :ids, :places, :words)
ON CONFLICT (last) DO UPDATE
SET model = excluded.model, ids = excluded.ids, places = excluded.places, words = excluded.words;

-- name: replace
-- Blocks that a new one has taken the place of.
DELETE FROM doc_sketch WHERE last > :after AND last < :last;

-- name: clear
DELETE FROM doc_sketch;

-- name: last_deletion_id
-- The number of the last deletion.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'doc_gone';

-- name: count_deletions
-- How many deletions are kept.
SELECT count(*) FROM doc_gone WHERE id > 0;

-- name: trim_deletions
DELETE FROM doc_gone WHERE id IN (SELECT id FROM doc_gone WHERE id > 0 AND id <= :upto LIMIT :limit);

-- name: set_deletion_floor
INSERT INTO doc_gone (id, vector) VALUES (0, :upto)
ON CONFLICT (id) DO UPDATE SET vector = excluded.vector;

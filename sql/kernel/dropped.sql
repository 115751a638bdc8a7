-- name: can_drop
-- Whether words may leave the full-text indexes later than their documents.
SELECT 1;

-- name: drop_ids
INSERT INTO doc_dropped (id, space, text, grams, place)
SELECT d.id, d.space, d.text, d.grams, d.place
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value;

-- name: drop_partitions
INSERT INTO doc_dropped (id, space, text, grams, place)
SELECT id, space, text, grams, place
FROM doc
WHERE place IN (SELECT value FROM json_each(:partitions));

-- name: log_vectors
INSERT INTO doc_gone (vector)
SELECT v.id FROM doc_dropped AS x CROSS JOIN doc_vector AS v ON v.doc = x.id;

-- name: delete_vectors
DELETE FROM doc_vector WHERE doc IN (SELECT id FROM doc_dropped);

-- name: unflag
DELETE FROM doc_flag WHERE doc IN (SELECT id FROM doc_dropped);

-- name: count_out
-- Takes the documents out of the numbers of their days.
INSERT INTO doc_day (space, day, documents)
SELECT d.space, substr(d.updated_at, 1, 10), -count(*)
FROM doc_dropped AS x
CROSS JOIN doc AS d ON d.id = x.id
GROUP BY d.space, substr(d.updated_at, 1, 10)
ON CONFLICT (space, day) DO UPDATE
SET documents = doc_day.documents + excluded.documents;

-- name: delete_docs
DELETE FROM doc WHERE id IN (SELECT id FROM doc_dropped);

-- name: next
-- The next documents whose words are still in the full-text indexes: at most :limit, with about :bytes of text and at
-- least one; and whether an index of parts of words holds them too.
SELECT s.id, EXISTS (SELECT 1 FROM doc_dropped_part_content AS c WHERE c.id = s.id)
FROM (
    SELECT p.id, p.size, sum(p.size) OVER (ORDER BY p.id) AS total
    FROM (SELECT id, octet_length(text) AS size FROM doc_dropped ORDER BY id LIMIT :limit) AS p
) AS s
WHERE s.total - s.size < :bytes
ORDER BY s.id;

-- name: fts_delete
INSERT INTO doc_fts (doc_fts, rowid, text, grams, place)
SELECT 'delete', x.id, x.text, x.grams, x.place
FROM json_each(:ids) AS i
CROSS JOIN doc_dropped_content AS x ON x.id = i.value;

-- name: parts_delete
INSERT INTO doc_part (doc_part, rowid, text)
SELECT 'delete', x.id, x.text
FROM json_each(:ids) AS i
CROSS JOIN doc_dropped_part_content AS x ON x.id = i.value;

-- name: forget
DELETE FROM doc_dropped WHERE id IN (SELECT value FROM json_each(:ids));

-- name: forget_all
-- An index that a rebuild made of the documents alone holds no words of these.
DELETE FROM doc_dropped;

-- name: sequences
-- The last ids ever assigned to documents, vectors and deletions; no id is assigned twice. The number of documents: SQLite
-- reads the pages of the smallest index, .1 to .2 ms for a million. And whether full text holds words of deleted documents.
SELECT
    coalesce(max(seq) FILTER (WHERE name = 'doc'), 0), coalesce(max(seq) FILTER (WHERE name = 'doc_vector'), 0),
    coalesce(max(seq) FILTER (WHERE name = 'doc_gone'), 0), (SELECT count(*) FROM doc),
    EXISTS (SELECT 1 FROM doc_dropped)
FROM sqlite_sequence;

-- name: by_keys
-- The documents of the given (space, key) pairs.
SELECT d.id, d.space, d.key, d.created_at, d.updated_at
FROM jsonb_each(:keys) AS k
CROSS JOIN doc AS d ON d.space = k.value ->> 0 AND d.key = k.value ->> 1;

-- name: in_partitions
SELECT id, space, key, created_at, updated_at
FROM doc
WHERE place IN (SELECT value FROM json_each(:partitions));

-- name: keys_of
SELECT d.id, d.space, d.key
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value;

-- name: insert_docs
INSERT INTO doc (id, space, key, place, text, grams, dialect, tool, actor, created_at, updated_at)
SELECT {fields 11} FROM jsonb_each(:rows);

-- name: fts_insert
INSERT INTO doc_fts (rowid, text, grams, place)
SELECT d.id, d.text, d.grams, d.place
FROM json_each(:ids) AS i
CROSS JOIN doc_content AS d ON d.id = i.value;

-- name: fts_delete
-- An external-content table needs the indexed values for a 'delete' (https://sqlite.org/fts5.html#the_delete_command),
-- so this runs before the documents are deleted.
INSERT INTO doc_fts (doc_fts, rowid, text, grams, place)
SELECT 'delete', d.id, d.text, d.grams, d.place
FROM json_each(:ids) AS i
CROSS JOIN doc_content AS d ON d.id = i.value;

-- name: parts_insert
INSERT INTO doc_part (rowid, text)
SELECT d.id, d.text
FROM json_each(:ids) AS i
CROSS JOIN doc_part_content AS d ON d.id = i.value;

-- name: parts_delete
INSERT INTO doc_part (doc_part, rowid, text)
SELECT 'delete', d.id, d.text
FROM json_each(:ids) AS i
CROSS JOIN doc_part_content AS d ON d.id = i.value;

-- name: delete_docs
DELETE FROM doc WHERE id IN (SELECT value FROM json_each(:ids));

-- name: set_provenance
UPDATE doc
SET dialect = :dialect, tool = :tool, actor = :actor, created_at = :created_at, updated_at = :updated_at
WHERE space = :space AND key = :key;

-- name: set_words
-- Rows are (document, its words besides the text).
UPDATE doc SET grams = r.value ->> 1
FROM jsonb_each(:rows) AS r
WHERE doc.id = r.value ->> 0;

-- name: match_trigrams
-- The documents of the partitions that hold all trigrams, not necessarily side by side.
SELECT d.key, d.text
FROM doc_part AS f
CROSS JOIN doc AS d ON d.id = f.rowid
WHERE f.doc_part MATCH :query AND d.place IN (SELECT value FROM json_each(:partitions));

-- name: add_days
-- Adds to the numbers of documents of (space, day) pairs; a negative number takes away.
INSERT INTO doc_day (space, day, documents)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2
FROM jsonb_each(:rows) AS r
WHERE true
ON CONFLICT (space, day) DO UPDATE
SET documents = doc_day.documents + excluded.documents;

-- name: differing_days
-- The number of (space, day) pairs whose number is not that of the documents.
SELECT count(*)
FROM (
    SELECT p.space, substr(d.updated_at, 1, 10) AS day, count(*) AS documents
    FROM doc AS d INDEXED BY doc_by_time
    JOIN doc_place AS p ON p.id = d.place
    GROUP BY p.space, substr(d.updated_at, 1, 10)
) AS c
FULL JOIN doc_day AS k ON k.space = c.space AND k.day = c.day
WHERE coalesce(c.documents, 0) <> coalesce(k.documents, 0);

-- name: clear_days
DELETE FROM doc_day;

-- name: rebuild_days
INSERT INTO doc_day (space, day, documents)
SELECT p.space, substr(d.updated_at, 1, 10), count(*)
FROM doc AS d INDEXED BY doc_by_time
JOIN doc_place AS p ON p.id = d.place
GROUP BY p.space, substr(d.updated_at, 1, 10);

-- name: total_of_days
SELECT coalesce(sum(documents), 0) FROM doc_day;

-- name: optimize_full_text
-- Merges all segments of the full-text index into one, without the deleted rows.
INSERT INTO doc_fts (doc_fts) VALUES ('optimize');

-- name: optimize_parts
INSERT INTO doc_part (doc_part) VALUES ('optimize');

-- name: finished_histories
-- The last event of each memory that was deleted before a time.
SELECT h.id, h.space, h.key
FROM history AS h
WHERE
    h.id > :after AND h.after IS NULL AND h.at < :before
    AND NOT EXISTS (SELECT 1 FROM history AS n WHERE n.space = h.space AND n.key = h.key AND n.id > h.id)
ORDER BY h.id
LIMIT :limit;

-- name: delete_histories
DELETE FROM history
WHERE (space, key) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:keys));

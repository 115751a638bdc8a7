-- name: merge_full_text
-- Goes on to merge all segments of the full-text index into a single segment, without the deleted rows; a negative
-- number of pages begins it.
INSERT INTO doc_fts (doc_fts, rank) VALUES ('merge', :pages);

-- name: merge_parts
INSERT INTO doc_part (doc_part, rank) VALUES ('merge', :pages);

-- name: segments
-- The segments of the full-text index, and the pages that it lists of them.
SELECT count(DISTINCT i.segid) AS segments, count(*) AS pages
FROM doc_fts_idx AS i;

-- name: last_event
SELECT coalesce(max(id), 0) FROM history;

-- name: finished_histories
-- The memories that were deleted before a time, by their last events, of a range.
SELECT h.space, h.key
FROM history AS h
WHERE
    h.id > :after AND h.id <= :upto AND h.after IS NULL AND h.at < :before
    AND NOT EXISTS (SELECT 1 FROM history AS n WHERE n.space = h.space AND n.key = h.key AND n.id > h.id)
ORDER BY h.id;

-- name: delete_histories
DELETE FROM history
WHERE (space, key) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:keys));

-- name: match_trigrams
-- The documents of the partitions that hold all trigrams, not necessarily side by side.
SELECT d.key, d.text
FROM doc_part AS f
CROSS JOIN doc AS d ON d.id = f.rowid
WHERE f.doc_part MATCH :query AND d.place IN (SELECT value FROM json_each(:partitions));

-- name: record_access
-- Rows are (id, decay score).
UPDATE brain_memory
SET access_count = access_count + 1, last_accessed_at = :now, decay_score = seen.decay_score
FROM (SELECT DISTINCT value ->> 0 AS id, value ->> 1 AS decay_score FROM jsonb_each(:rows)) AS seen
WHERE brain_memory.db = :db AND brain_memory.id = seen.id;

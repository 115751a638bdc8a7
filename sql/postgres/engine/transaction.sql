-- name: end
-- Keeps the ids that the transaction has given, and a mark by which is known afterwards that it has committed.
WITH kept AS (SELECT keep_ids() AS ids)
INSERT INTO commit_mark (mark) SELECT CAST(:mark AS bigint) FROM kept;

-- name: forget_marks
-- Of transactions whose callers have long been answered.
DELETE FROM commit_mark WHERE at < clock_timestamp() - interval '10 minutes';

-- name: find_mark
UPDATE commit_mark SET at = clock_timestamp() WHERE mark = :mark RETURNING mark;

-- name: role
SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END;

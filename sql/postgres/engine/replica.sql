-- name: positions
-- Positions in the log as numbers: the one replayed, and the last one received. A primary has everything.
SELECT
    CASE
        WHEN pg_is_in_recovery() THEN CAST(coalesce(pg_last_wal_replay_lsn() - CAST('0/0' AS pg_lsn), 0) AS bigint)
        ELSE 9223372036854775807
    END,
    CAST(coalesce(pg_last_wal_receive_lsn() - CAST('0/0' AS pg_lsn), 0) AS bigint);

-- name: flushed
-- After a commit that waited for the disk: the flushed log is sent at once.
SELECT CAST(pg_current_wal_flush_lsn() - CAST('0/0' AS pg_lsn) AS bigint);

-- name: inserted
-- After a commit that did not wait.
SELECT CAST(pg_current_wal_insert_lsn() - CAST('0/0' AS pg_lsn) AS bigint);

-- name: end
-- Keeps the ids that the transaction has given; its number, by which its fate can be asked for.
SELECT keep_ids(), CAST(pg_current_xact_id() AS text);

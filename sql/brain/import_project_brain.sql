-- name: config
-- Keys that exist are skipped; returns the new keys.
INSERT INTO brain_config (key, value, description, updated_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(:rows)
WHERE true
ON CONFLICT (key) DO NOTHING
RETURNING key;

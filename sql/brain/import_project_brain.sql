-- name: memories
-- Rows whose id exists are skipped; returns the new ids. The same for the statements below.
INSERT INTO brain_memory (db, {memory})
SELECT :db, {fields 22} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: entities
INSERT INTO brain_entity (db, {entity})
SELECT :db, {fields 16} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: links
INSERT INTO brain_link (db, {link})
SELECT :db, {fields 11} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: notes
INSERT INTO brain_note ({note})
SELECT {fields 19} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: resources
INSERT INTO brain_resource ({resource})
SELECT {fields 20} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: config
INSERT INTO brain_config (key, value, description, updated_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(:rows)
WHERE true
ON CONFLICT (key) DO NOTHING
RETURNING key;

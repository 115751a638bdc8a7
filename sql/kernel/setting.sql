-- name: add_if_missing
-- Stores a value only if there is none yet.
INSERT INTO setting (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;

-- name: get
SELECT value FROM setting WHERE name = :name;

-- name: count_migrations
-- The number of migrations applied.
SELECT count(*) FROM migration;

-- name: all
SELECT name, value FROM setting;

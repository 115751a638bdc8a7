-- name: tables
SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name;

-- name: migrations
SELECT name FROM migration ORDER BY name;

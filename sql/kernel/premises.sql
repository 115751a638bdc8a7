-- name: migrations
SELECT name FROM migration ORDER BY name;

-- name: memories
SELECT d.id, d.space, d.key, p.scope, d.text, d.dialect, d.tool, d.actor, d.created_at, d.updated_at, f.rule
FROM doc AS d
JOIN doc_place AS p ON p.id = d.place
LEFT JOIN doc_flag AS f ON f.doc = d.id
ORDER BY d.space, p.scope, d.key;

-- name: days
-- The operations of each day, newest first.
SELECT substr(at, 1, 10) AS day, dialect, operation, count(*)
FROM history
GROUP BY day, dialect, operation
ORDER BY day DESC, dialect, operation;

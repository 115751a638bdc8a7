-- name: history
SELECT space, key, operation, before, after, reason, dialect, tool, actor, at FROM history ORDER BY id;

-- name: has_history
SELECT EXISTS (SELECT 1 FROM history WHERE space = :space AND key = :key);

-- name: documents
SELECT space, key, dialect, tool, actor, created_at, updated_at FROM doc ORDER BY space, key;

-- name: is_indexed
SELECT EXISTS (SELECT 1 FROM doc WHERE space = :space AND key = :key);

-- name: releases
SELECT digest, space, key, at FROM doc_release ORDER BY digest;

-- name: add_release
INSERT INTO doc_release (digest, space, key, at) VALUES (:digest, :space, :key, :at) ON CONFLICT DO NOTHING;

-- name: is_touched
-- Whether a dialect has, or had, any memory.
SELECT
    EXISTS (SELECT 1 FROM history WHERE space = :dialect OR (space > :dialect || ':' AND space < :dialect || ';'))
    OR EXISTS (SELECT 1 FROM doc WHERE space = :dialect OR (space > :dialect || ':' AND space < :dialect || ';'));

-- name: memories
SELECT d.space, d.key, p.scope, d.text, d.dialect, d.tool, d.actor, d.created_at, d.updated_at, f.rule
FROM doc AS d
JOIN doc_place AS p ON p.id = d.place
LEFT JOIN doc_flag AS f ON f.doc = d.id
ORDER BY d.space, p.scope, d.key;

-- name: days
-- What was done on each day, newest first.
SELECT substr(at, 1, 10) AS day, dialect, operation, count(*)
FROM history
GROUP BY day, dialect, operation
ORDER BY day DESC, dialect, operation;

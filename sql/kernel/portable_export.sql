-- name: history
SELECT space, key, operation, before, after, reason, dialect, tool, actor, at FROM history ORDER BY id;

-- name: documents
SELECT space, key, dialect, tool, actor, created_at, updated_at FROM doc ORDER BY space, key;

-- name: releases
SELECT digest, space, key, at FROM doc_release ORDER BY digest;

-- name: last_id
SELECT last_id('doc');

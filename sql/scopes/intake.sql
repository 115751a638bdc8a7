-- name: known
SELECT id FROM scopes_entry WHERE id IN (SELECT value FROM json_each(:ids));

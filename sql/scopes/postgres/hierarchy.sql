-- name: update_project
UPDATE scopes_project
{changes};

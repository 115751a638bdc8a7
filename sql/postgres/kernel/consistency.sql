-- name: trees
-- Only a file has an integrity check.
SELECT '', '', 0, 0 WHERE false;

-- name: page_owner
SELECT '' WHERE :page < 0;

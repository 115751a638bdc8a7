-- name: model_id
SELECT id FROM doc_model WHERE identity = :identity;

-- name: partition_sizes
-- How many documents each place holds, counted up to a number.
SELECT p.value, (SELECT count(*) FROM (SELECT 1 FROM doc AS d WHERE d.place = p.value LIMIT :most))
FROM json_each(:places) AS p;

-- name: last_sealed_id
SELECT b.last
FROM (SELECT coalesce((SELECT last FROM doc_block ORDER BY last DESC LIMIT 1), 0) AS last) AS b
WHERE last_id('doc_vector') - b.last >= :size;

-- name: last_deletion_id
SELECT last_id('doc_gone');

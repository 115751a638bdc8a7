-- name: flag
INSERT INTO doc_flag (doc, rule, at)
SELECT value ->> 0, value ->> 1, :now FROM jsonb_each(:rows) WHERE true
ON CONFLICT (doc) DO UPDATE SET rule = excluded.rule, at = excluded.at;

-- name: unflag
DELETE FROM doc_flag WHERE doc IN (SELECT value FROM json_each(:ids));

-- name: released
-- Those of the given digests that an operator has released.
SELECT r.digest
FROM json_each(:digests) AS d
CROSS JOIN doc_release AS r ON r.digest = d.value;

-- name: release
INSERT INTO doc_release (digest, space, key, at) VALUES (:digest, :space, :key, :now)
ON CONFLICT (digest) DO NOTHING;

-- name: flagged
SELECT d.id, d.space, d.key, d.text, d.dialect, d.tool, d.actor, f.rule, f.at
FROM doc_flag AS f
JOIN doc AS d ON d.id = f.doc
ORDER BY f.at, f.doc;

-- name: documents_after
-- The next documents with their flags, to match them against the current rules: at most :limit, with about :bytes of
-- text and at least one.
SELECT d.id, d.space, d.key, d.text, d.dialect, d.tool, d.actor, f.rule, f.at
FROM (
    SELECT p.id, p.size, sum(p.size) OVER (ORDER BY p.id) AS total
    FROM (
        SELECT id, octet_length(text) AS size
        FROM doc
        WHERE id > :id
        ORDER BY id
        LIMIT :limit
    ) AS p
) AS s
CROSS JOIN doc AS d ON d.id = s.id
LEFT JOIN doc_flag AS f ON f.doc = d.id
WHERE s.total - s.size < :bytes
ORDER BY d.id;

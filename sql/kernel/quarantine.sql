-- name: flag
INSERT INTO doc_flag (doc, rule, at)
SELECT value ->> 0, value ->> 1, :now FROM json_each(:rows) WHERE true
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
-- All documents in pages, with their flags, to match them against the current rules.
SELECT d.id, d.space, d.key, d.text, d.dialect, d.tool, d.actor, f.rule, f.at
FROM doc AS d
LEFT JOIN doc_flag AS f ON f.doc = d.id
WHERE d.id > :id
ORDER BY d.id
LIMIT :limit;

-- name: of_documents
-- The places of these documents that a client has met since their last changes.
SELECT w.doc, w.path, w.name, w.line, w.digest, w.state, w.project
FROM json_each(:docs) AS i
CROSS JOIN doc_witness AS w ON w.doc = i.value
CROSS JOIN doc AS d ON d.id = w.doc AND d.updated_at <= w.at;

-- name: stale
-- The documents of a project that name a place which is not as it was, or of all projects for null.
SELECT w.project, w.doc, w.path, w.name, w.line, w.state
FROM doc_witness AS w
JOIN doc AS d ON d.id = w.doc AND d.updated_at <= w.at
WHERE w.state <> '' AND (:project IS NULL OR w.project = :project)
ORDER BY w.project, w.doc, w.path, w.name, w.line;

-- name: in_project
-- The documents that name a place in a project which a client has met.
SELECT DISTINCT w.doc FROM doc_witness AS w WHERE w.project = :project ORDER BY w.doc;

-- name: keep
INSERT INTO doc_witness (doc, path, name, line, digest, state, project, at)
SELECT {fields 8} FROM jsonb_each(:rows) WHERE true
ON CONFLICT (doc, path, name, line) DO UPDATE
SET digest = excluded.digest, state = excluded.state, project = excluded.project, at = excluded.at;

-- name: confirm
-- The places of a document are met anew.
DELETE FROM doc_witness WHERE doc IN (SELECT value FROM json_each(:docs));

-- name: sweep
-- Of documents that are gone nothing is kept.
DELETE FROM doc_witness WHERE doc NOT IN (SELECT id FROM doc);

-- name: add_shown
INSERT INTO audit_shown (session, at, tool, memories) VALUES (:session, :now, :tool, :memories)
ON CONFLICT (session, at, tool) DO NOTHING;

-- name: expire_shown
DELETE FROM audit_shown
WHERE
    (session, at, tool) IN (
        SELECT a.session, a.at, a.tool FROM audit_shown AS a WHERE a.at <= :before ORDER BY a.at LIMIT :limit
    );

-- name: shown
SELECT session, at, tool, memories
FROM audit_shown
WHERE session IN (SELECT value FROM json_each(:sessions))
ORDER BY session, at;

-- name: insert
-- Rows are the columns of a resource in their order. As of a memory.
INSERT INTO brain_resource ({resource})
SELECT {fields 20} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: get
SELECT {resource}
FROM brain_resource
WHERE db = :db AND id = :id;

-- name: page
-- A null status means all but archived.
SELECT {resource}
FROM brain_resource
WHERE
    db = :db
    AND iif(:status IS NULL, status <> 'archived', status = :status)
    AND (:resource_type IS NULL OR resource_type = :resource_type)
    AND (:categories IS NULL OR category IN (SELECT value FROM json_each(:categories)))
    AND (:projects IS NULL OR project_id IN (SELECT value FROM json_each(:projects)))
    AND (:domain IS NULL OR domain = :domain)
    AND (:tags IS NULL OR {has_tag})
ORDER BY created_at DESC, id
LIMIT :limit OFFSET :offset;

-- name: touch
UPDATE brain_resource
SET access_count = access_count + 1, accessed_at = :now
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: delete
DELETE FROM brain_resource WHERE db = :db AND id = :id;

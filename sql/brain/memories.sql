-- name: page
SELECT {memory}
FROM brain_memory
WHERE
    db = :db
    AND status = :status
    AND (:category IS NULL OR category = :category)
    AND (:projects IS NULL OR project_id IN (SELECT value FROM json_each(:projects)))
    AND (:created_after IS NULL OR created_at >= :created_after)
    AND (:created_before IS NULL OR created_at <= :created_before)
    AND (:min_importance IS NULL OR importance >= :min_importance)
    AND (:tags IS NULL OR {has_tag})
ORDER BY importance DESC, updated_at DESC, id
LIMIT :limit OFFSET :offset;

-- name: update
UPDATE brain_memory
SET
    content = coalesce(:content, content),
    category = coalesce(:category, category),
    subcategory = coalesce(:subcategory, subcategory),
    tags = coalesce(:tags, tags),
    status = coalesce(:status, status),
    superseded_by = iif(:status = 'active', NULL, superseded_by),
    importance = coalesce(:importance, importance),
    metadata = coalesce(:metadata, metadata),
    valid_until = nullif(coalesce(:valid_until, valid_until), ''),
    has_embedding = coalesce(:has_embedding, has_embedding),
    embedding_model = iif(:has_embedding IS NULL, embedding_model, :embedding_model),
    updated_at = :now
WHERE db = :db AND id = :id
RETURNING {memory};

-- name: delete
DELETE FROM brain_memory WHERE db = :db AND id = :id;

-- name: insert
-- Rows are the columns of a note in their order. As of a memory.
INSERT INTO brain_note ({note})
SELECT {fields 19} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: get
SELECT {note}
FROM brain_note
WHERE db = :db AND id = :id;

-- name: page
SELECT {note}
FROM brain_note
WHERE
    db = :db
    AND (:note_type IS NULL OR note_type = :note_type)
    AND (:categories IS NULL OR category IN (SELECT value FROM json_each(:categories)))
    AND (:projects IS NULL OR project_id IN (SELECT value FROM json_each(:projects)))
    AND (:entity_id IS NULL OR entity_id = :entity_id)
    AND (:tags IS NULL OR {has_tag})
ORDER BY updated_at DESC, id
LIMIT :limit OFFSET :offset;

-- name: update
-- New content is a new version.
UPDATE brain_note
SET
    title = coalesce(:title, title),
    content = coalesce(:content, content),
    note_type = coalesce(:note_type, note_type),
    summary = coalesce(:summary, summary),
    key_points = coalesce(:key_points, key_points),
    tags = coalesce(:tags, tags),
    category = coalesce(:category, category),
    project_id = coalesce(:project_id, project_id),
    entity_id = coalesce(:entity_id, entity_id),
    word_count = coalesce(:word_count, word_count),
    version = version + iif(:content IS NULL, 0, 1),
    has_embedding = :has_embedding,
    embedding_model = :embedding_model,
    updated_at = :now
WHERE db = :db AND id = :id
RETURNING {note};

-- name: delete
DELETE FROM brain_note WHERE db = :db AND id = :id;

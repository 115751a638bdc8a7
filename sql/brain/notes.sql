-- name: insert
-- One row, the columns of a note in their order.
INSERT INTO brain_note (
    id, db, title, content, note_type, summary, key_points, tags, category, parent_note_id, version,
    previous_version_id, project_id, entity_id, word_count, has_embedding, embedding_model, created_at,
    updated_at
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14,
    value ->> 15, value ->> 16, value ->> 17, value ->> 18
FROM jsonb_each(:rows);

-- name: get
SELECT
    id, db, title, content, note_type, summary, key_points, tags, category, parent_note_id, version,
    previous_version_id, project_id, entity_id, word_count, has_embedding, embedding_model, created_at,
    updated_at
FROM brain_note
WHERE db = :db AND id = :id;

-- name: page
SELECT
    id, db, title, content, note_type, summary, key_points, tags, category, parent_note_id, version,
    previous_version_id, project_id, entity_id, word_count, has_embedding, embedding_model, created_at,
    updated_at
FROM brain_note
WHERE
    db = :db
    AND (:note_type IS NULL OR note_type = :note_type)
    AND (:category IS NULL OR category = :category)
    AND (:project_id IS NULL OR project_id = :project_id)
    AND (:entity_id IS NULL OR entity_id = :entity_id)
    AND (
        :tags IS NULL
        OR EXISTS (
            SELECT 1 FROM json_each(iif(json_valid(brain_note.tags), brain_note.tags, '[]')) AS t
            JOIN json_each(:tags) AS w ON t.value = w.value COLLATE NOCASE
        )
    )
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
RETURNING
    id, db, title, content, note_type, summary, key_points, tags, category, parent_note_id, version,
    previous_version_id, project_id, entity_id, word_count, has_embedding, embedding_model, created_at,
    updated_at;

-- name: delete
-- Returns the note, for the history.
DELETE FROM brain_note WHERE db = :db AND id = :id
RETURNING
    id, db, title, content, note_type, summary, key_points, tags, category, parent_note_id, version,
    previous_version_id, project_id, entity_id, word_count, has_embedding, embedding_model, created_at,
    updated_at;

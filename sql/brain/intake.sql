-- name: memories
-- The memories of these ids that are here: root, text and time. The same for the statements below.
SELECT id, project_id, content, created_at
FROM brain_memory
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: entities
SELECT id, CAST(metadata ->> 'root' AS TEXT), name, created_at
FROM brain_entity
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: notes
SELECT id, project_id, content, created_at
FROM brain_note
WHERE db = :db AND id IN (SELECT value FROM json_each(:ids));

-- name: observations
-- The active memories that are part of an entity.
SELECT {memory}
FROM brain_memory
WHERE
    db = :db AND status = 'active'
    AND id IN (
        SELECT source_id FROM brain_link
        WHERE
            db = :db AND target_id = :entity AND target_type = 'entity' AND source_type = 'memory'
            AND relationship = 'part_of'
    )
ORDER BY id;

-- name: imported
-- The active memories of a program: root, text and time.
SELECT id, project_id, content, created_at
FROM brain_memory
WHERE db = :db AND status = 'active' AND source = :program
ORDER BY id;

-- name: imported_notes
-- The notes of which the key points begin with this part, which names a program: root, title and time.
SELECT id, project_id, title, created_at
FROM brain_note
WHERE db = :db AND instr(key_points, :part) = 1
ORDER BY id;

-- name: known_links
-- Rows are (id, source_type, source_id, target_type, target_id, relationship). Returns the ids of those whose link is
-- there, under any id.
SELECT r.value ->> 0
FROM jsonb_each(:rows) AS r
CROSS JOIN brain_link AS l
    ON l.db = :db AND l.source_id = r.value ->> 2 AND l.source_type = r.value ->> 1 AND l.target_type = r.value ->> 3
    AND l.target_id = r.value ->> 4 AND l.relationship = r.value ->> 5;

-- name: replace_memory
-- A memory as its source has it now. The same for the statements below.
UPDATE brain_memory
SET
    content = :content,
    category = :category,
    tags = :tags,
    valid_from = :valid_from,
    valid_until = :valid_until,
    metadata = :metadata,
    status = 'active',
    superseded_by = NULL,
    has_embedding = :has_embedding,
    embedding_model = :embedding_model,
    updated_at = :updated_at
WHERE db = :db AND id = :id
RETURNING {memory};

-- name: replace_note
UPDATE brain_note
SET
    content = :content,
    title = :title,
    note_type = :note_type,
    summary = :summary,
    key_points = :key_points,
    tags = :tags,
    category = :category,
    project_id = :project_id,
    word_count = :word_count,
    version = version + 1,
    has_embedding = :has_embedding,
    embedding_model = :embedding_model,
    updated_at = :updated_at
WHERE db = :db AND id = :id
RETURNING {note};

-- name: replace_entity
UPDATE brain_entity
SET
    description = :description,
    aliases = :aliases,
    type = :type,
    metadata = :metadata,
    has_embedding = :has_embedding,
    embedding_model = :embedding_model,
    updated_at = :updated_at
WHERE db = :db AND id = :id
RETURNING {entity};

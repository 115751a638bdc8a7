-- name: add
-- Returns an id only if the session has no equal content newer than `since`.
INSERT INTO sessions_memory (session_id, kind, content, summary, tags, priority, metadata, hash, created_at)
SELECT :session_id, :kind, :content, :summary, :tags, :priority, :metadata, :hash, :created_at
WHERE NOT EXISTS (
    SELECT 1 FROM sessions_memory WHERE hash = :hash AND session_id = :session_id AND created_at > :since
)
RETURNING id;

-- name: duplicate
-- The newest memory that keeps `add` from storing this content again.
SELECT id FROM sessions_memory
WHERE hash = :hash AND session_id = :session_id AND created_at > :since
ORDER BY id DESC
LIMIT 1;

-- name: spelled
-- Those of the sessions that have memories.
SELECT s.value
FROM json_each(:sessions) AS s
WHERE EXISTS (SELECT 1 FROM sessions_memory AS m WHERE m.session_id = s.value);

-- name: add_mentions
-- Rows are (entity_type, name, source, path).
INSERT INTO sessions_mention (memory_id, entity_type, name, source, path)
SELECT :memory_id, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(:rows);

-- name: all_for_index
SELECT id, session_id, kind, content, summary, tags, priority, metadata, created_at FROM sessions_memory;

-- name: some_for_index
SELECT m.id, m.session_id, m.kind, m.content, m.summary, m.tags, m.priority, m.metadata, m.created_at
FROM json_each(:ids) AS i
CROSS JOIN sessions_memory AS m ON m.id = i.value;

-- name: tagged
-- Tags are separated by commas.
SELECT id
FROM sessions_memory
WHERE EXISTS (
    SELECT 1 FROM json_each(:tags) AS w
    WHERE instr(',' || replace(fold(tags), ', ', ',') || ',', ',' || fold(w.value) || ',') > 0
);

-- name: insert
-- Rows are (db, and the columns of a memory in their order). Rows whose id exists are skipped; returns the new ids.
INSERT INTO brain_memory (db, {memory})
SELECT {fields 23} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: get
SELECT {memory}
FROM brain_memory
WHERE db = :db AND id = :id;

-- name: get_many
-- The memories of the given ids, in that order.
SELECT m.{memory}
FROM json_each(:ids) AS i
CROSS JOIN brain_memory AS m ON m.db = :db AND m.id = i.value
ORDER BY i.key;

-- name: set_status
UPDATE brain_memory
SET status = :status, superseded_by = :superseded_by, updated_at = :now
WHERE db = :db AND id = :id;

-- name: link
INSERT INTO brain_link (
    id, db, source_type, source_id, target_type, target_id, relationship, strength, context, bidirectional, metadata,
    created_at
)
VALUES (:id, :db, 'memory', :new, 'memory', :old, :relationship, 1.0, :context, 0, :metadata, :now);

-- name: free_predecessors
-- The memories that a memory replaced are those it links to.
UPDATE brain_memory
SET superseded_by = NULL, updated_at = :now
WHERE
    db = :db
    AND superseded_by = :id
    AND id IN (
        SELECT target_id FROM brain_link
        WHERE db = :db AND source_id = :id AND source_type = 'memory' AND target_type = 'memory'
    )
RETURNING {memory};

-- name: replaced
-- The memories that a memory replaced, and those of some ids, that are not in force.
SELECT {memory}
FROM brain_memory
WHERE
    db = :db AND status <> 'active'
    AND (superseded_by = :id OR id IN (SELECT f.value FROM json_each(:freed) AS f));

-- name: memory_signals
-- The columns that the score of a memory needs besides the hit.
SELECT m.id, m.decay_score, coalesce(m.last_accessed_at, m.created_at), m.importance
FROM json_each(:ids) AS i
CROSS JOIN brain_memory AS m ON m.db = :db AND m.id = i.value;

-- name: entity_signals
-- An entity without mentions has no importance.
SELECT e.id, 1.0, e.updated_at, nullif(e.mention_count, 0)
FROM json_each(:ids) AS i
CROSS JOIN brain_entity AS e ON e.db = :db AND e.id = i.value;

-- name: note_signals
SELECT n.id, 1.0, n.updated_at, NULL
FROM json_each(:ids) AS i
CROSS JOIN brain_note AS n ON n.db = :db AND n.id = i.value;

-- name: notes
SELECT n.{note}
FROM json_each(:ids) AS i
CROSS JOIN brain_note AS n ON n.db = :db AND n.id = i.value;

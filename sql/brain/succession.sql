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
RETURNING id, content;

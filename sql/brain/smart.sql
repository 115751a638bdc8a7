-- name: same_content
-- The active memories with exactly this content.
SELECT {memory}
FROM brain_memory
WHERE db = :db AND status = 'active' AND content = :content
ORDER BY importance DESC, updated_at DESC, id
LIMIT :limit;

-- name: insert
-- Rows are (db, and the columns of a link in their order). Returns the ids of the links that are new.
INSERT INTO brain_link (db, {link})
SELECT {fields 12} FROM jsonb_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: missing_ends
-- The given (type, id) pairs that exist in none of the databases.
SELECT p.value ->> 0, p.value ->> 1
FROM json_each(:ends) AS p
WHERE
    NOT EXISTS (
        SELECT 1 FROM json_each(:databases) AS d
        CROSS JOIN brain_memory AS m ON m.db = d.value AND m.id = p.value ->> 1
        WHERE p.value ->> 0 = 'memory'
    )
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:databases) AS d
        CROSS JOIN brain_entity AS e ON e.db = d.value AND e.id = p.value ->> 1
        WHERE p.value ->> 0 = 'entity'
    )
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:databases) AS d
        CROSS JOIN brain_note AS n ON n.db = d.value AND n.id = p.value ->> 1
        WHERE p.value ->> 0 = 'note'
    )
ORDER BY p.key;

-- name: from_source
-- Unary + keeps SQLite from using the index on created_at, which would scan all links of the database
-- (https://sqlite.org/optoverview.html#disqualifying_where_clause_terms_using_unary_).
SELECT {link}
FROM brain_link
WHERE
    db = :db
    AND source_id = :source_id
    AND (:target_id IS NULL OR target_id = :target_id)
    AND (:relationship IS NULL OR relationship = :relationship)
ORDER BY +created_at DESC, +id DESC;

-- name: to_target
SELECT {link}
FROM brain_link
WHERE db = :db AND target_id = :target_id AND (:relationship IS NULL OR relationship = :relationship)
ORDER BY +created_at DESC, +id DESC;

-- name: list
SELECT {link}
FROM brain_link
WHERE db = :db AND (:relationship IS NULL OR relationship = :relationship)
ORDER BY created_at DESC, id DESC;

-- name: with_entities
-- The links of a memory from and to entities in the given databases, which come first; oldest first.
SELECT db, {link}
FROM brain_link
WHERE rowid IN (
    SELECT l.rowid FROM json_each(:databases) AS d
    CROSS JOIN brain_link AS l
        ON l.db = d.value AND l.source_id = :id AND l.source_type = 'memory' AND l.target_type = 'entity'
    UNION ALL
    SELECT l.rowid FROM json_each(:databases) AS d
    CROSS JOIN brain_link AS l
        ON l.db = d.value AND l.target_id = :id AND l.target_type = 'memory' AND l.source_type = 'entity'
)
ORDER BY created_at, id;

-- name: get
SELECT {link}
FROM brain_link
WHERE db = :db AND id = :id;

-- name: delete
-- Returns the link, for the history.
DELETE FROM brain_link WHERE db = :db AND id = :id
RETURNING {link};

-- name: delete_of_row
-- Deletes the links from and to a memory or entity in the given databases.
DELETE FROM brain_link
WHERE rowid IN (
    SELECT l.rowid FROM json_each(:databases) AS d
    CROSS JOIN brain_link AS l ON l.db = d.value AND l.source_id = :id AND l.source_type = :type
    UNION ALL
    SELECT l.rowid FROM json_each(:databases) AS d
    CROSS JOIN brain_link AS l ON l.db = d.value AND l.target_id = :id AND l.target_type = :type
);

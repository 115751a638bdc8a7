-- fragment: call
-- The columns of the audit.
a.id, a.at, a.dialect, a.tool, a.actor, a.outcome, a.touched, a.targets, a.hash;

-- name: last_row
SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1;

-- name: append
INSERT INTO audit (id, at, dialect, tool, actor, outcome, touched, targets, hash)
SELECT {fields 9} FROM jsonb_each(:rows);

-- name: read
-- The newest rows below a number, newest first.
SELECT
    {call},
    EXISTS (SELECT 1 FROM undo AS u WHERE u.audit = a.id AND u.at > '') AS undoable
FROM audit AS a
WHERE a.id < :below
ORDER BY a.id DESC
LIMIT :limit;

-- name: after
-- The rows after a number, oldest first.
SELECT id, at, dialect, tool, actor, outcome, touched, targets, hash, false AS undoable
FROM audit
WHERE id > :id
ORDER BY id
LIMIT :limit;

-- name: first_with_outcome
-- The first row after a number that has an outcome.
SELECT id, at, dialect, tool, actor, outcome, touched, targets, hash, false AS undoable
FROM audit
WHERE id > :id AND outcome = :outcome
ORDER BY id
LIMIT 1;

-- name: touching
-- Of so many rows after a number the first that name any of these memories, each as space/key.
SELECT {call}, false AS undoable
FROM audit AS a
WHERE
    a.id > :id AND a.id <= CAST(:id AS INTEGER) + CAST(:among AS INTEGER)
    AND EXISTS (
        SELECT 1
        FROM json_each(a.targets) AS t
        WHERE
            CAST(t.value ->> 0 AS TEXT) || '/' || CAST(t.value ->> 1 AS TEXT) IN (
                SELECT CAST(p.value AS TEXT) FROM json_each(:places) AS p
            )
    )
ORDER BY a.id
LIMIT :limit;

-- name: add_undo
INSERT INTO undo (audit, at, call) VALUES (:audit, :at, :call);

-- name: forget_call
-- A call that is done has one row, that which recorded it as begun has none.
DELETE FROM undo WHERE call = :call;

-- name: add_part
INSERT INTO undo_part (call, part, targets, changes) VALUES (:call, :part, :targets, :changes);

-- name: undo_call
SELECT call FROM undo WHERE audit = :audit AND at > '';

-- name: undo_parts
-- The last part first.
SELECT part FROM undo_part WHERE call = :call ORDER BY part DESC;

-- name: undo_part
SELECT targets, changes FROM undo_part WHERE call = :call AND part = :part;

-- name: memories
-- How many memories a call touched, and how many of them are indexed: an event of the history names a memory too.
SELECT count(*), count(d.id)
FROM (
    SELECT DISTINCT CAST(t.value ->> 0 AS TEXT) AS space, CAST(t.value ->> 1 AS TEXT) AS key
    FROM undo_part AS p, json_each(p.targets) AS t
    WHERE p.call = :call
) AS c
LEFT JOIN doc AS d ON d.space = c.space AND d.key = c.key;

-- name: unfinished
-- The imports that were cut off, can be undone, and were not run again to their end; oldest first.
SELECT {call}, true AS undoable
FROM undo AS u
INNER JOIN audit AS a ON a.id = u.audit
WHERE
    u.at > '' AND a.outcome = 'begun' AND instr(a.tool, 'import ') = 1
    AND NOT EXISTS (SELECT 1 FROM audit AS d WHERE d.id > a.id AND d.tool = a.tool AND d.outcome = 'done')
ORDER BY a.id;

-- name: last_part
SELECT part FROM undo_part WHERE call = :call ORDER BY part DESC LIMIT 1;

-- name: delete_part
DELETE FROM undo_part WHERE call = :call AND part = :part;

-- name: delete_parts
DELETE FROM undo_part WHERE call = :call;

-- name: delete_undo
-- Returns the call, for its parts.
DELETE FROM undo WHERE audit = :audit
RETURNING call;

-- name: expired
-- A call that was before a time, or has no time any more.
SELECT call FROM undo WHERE at < :before ORDER BY at LIMIT 1;

-- name: expire
-- A call without a time cannot be undone; its parts are deleted some at a time.
UPDATE undo SET at = '' WHERE at > '' AND at < :before;

-- name: delete_some_parts
DELETE FROM undo_part
WHERE call = :call AND part IN (SELECT p.part FROM undo_part AS p WHERE p.call = :call ORDER BY p.part LIMIT :limit);

-- name: kept_undo
-- The calls that can be undone, the newest call, its tool, and the bytes that all of them take.
SELECT
    count(*), coalesce(max(u.audit), 0),
    coalesce(
        (SELECT a.tool FROM audit AS a WHERE a.id = (SELECT max(n.audit) FROM undo AS n WHERE n.at > '')), ''
    ),
    coalesce(sum((SELECT sum(length(p.changes) + length(p.targets)) FROM undo_part AS p WHERE p.call = u.call)), 0)
FROM undo AS u
WHERE u.at > '';

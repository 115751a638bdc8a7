-- name: append
-- One row per event, in the order given.
INSERT INTO history (space, key, operation, before, after, reason, dialect, tool, actor, at)
SELECT {fields 10} FROM jsonb_each(:rows);

-- name: append_deleted
-- Events that differ in key, text and reason alone, in the order given.
INSERT INTO history (space, key, operation, before, after, reason, dialect, tool, actor, at)
SELECT
    :space, r.value ->> 0, :operation, r.value ->> 1, NULL, r.value ->> 2, :dialect, :tool, :actor, :at
FROM jsonb_each(:rows) AS r;

-- name: read
SELECT id, operation, before, after, reason, dialect, tool, actor, at
FROM history
WHERE space = :space AND key = :key
ORDER BY id;

-- name: latest
SELECT after
FROM history
WHERE space = :space AND key = :key
ORDER BY id DESC
LIMIT 1;

-- name: as_of
SELECT after
FROM history
WHERE space = :space AND key = :key AND at <= :at
ORDER BY id DESC
LIMIT 1;

-- name: clear
-- Spaces named `dialect` or `dialect:...`: the range ends at a semicolon, the character after a colon.
DELETE FROM history WHERE space = :dialect OR (space > :dialect || ':' AND space < :dialect || ';');

-- name: known
-- The keys that have or had a memory.
SELECT value
FROM json_each(:keys)
WHERE EXISTS (SELECT 1 FROM history WHERE history.space = :space AND history.key = json_each.value);

-- name: of_reason
-- Those of the keys that have an event for this reason.
SELECT value
FROM json_each(:keys)
WHERE
    EXISTS (
        SELECT 1 FROM history
        WHERE history.space = :space AND history.key = json_each.value AND history.reason = :reason
    );

-- name: keys_of_reason
SELECT DISTINCT key FROM history WHERE space = :space AND reason = :reason ORDER BY key;

-- name: deleted_with
-- The keys of another space that were deleted when a memory was.
SELECT DISTINCT o.key
FROM history AS d CROSS JOIN history AS o
WHERE
    d.space = :space AND d.key = :key AND d.after IS NULL
    AND o.space = :other AND o.after IS NULL AND o.at = d.at
ORDER BY o.key;

-- name: forget
DELETE FROM history WHERE space = :space AND key = :key;

-- name: redact
UPDATE history
SET
    before = CASE before WHEN :text THEN '' ELSE before END,
    after = CASE after WHEN :text THEN '' ELSE after END
WHERE space = :space AND key = :key AND :text IN (before, after);

-- name: undo_calls
-- The calls with undo data that touched a memory.
SELECT DISTINCT p.call
FROM undo_part AS p, json_each(p.targets) AS t
WHERE t.value ->> 0 = :space AND t.value ->> 1 = :key;

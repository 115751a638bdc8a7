-- fragment: of_dialects
-- The rows in spaces of these dialects, null for all; the dialect of a space is the part before its first colon.
(:dialects IS NULL OR substr(space, 1, instr(space || ':', ':') - 1) IN (SELECT value FROM json_each(:dialects)));

-- fragment: event
-- An event with the beginnings of its texts.
h.id, h.space, h.key, h.operation, substr(h.before, 1, :chars), substr(h.after, 1, :chars), h.reason, h.dialect,
h.tool, h.actor, h.at;

-- fragment: beyond
-- The first key after a memory or a folder directly below a folder.
CASE
    WHEN instr(substr(c.key, :from), '/') > 0
        THEN substr(c.key, 1, :from + instr(substr(c.key, :from), '/') - 2) || '0'
    ELSE c.key || :least
END;

-- name: spaces
-- The number of documents of each space; null dialects exclude nothing.
SELECT c.space, sum(c.documents)
FROM doc_day AS c
WHERE {of_dialects}
GROUP BY c.space
HAVING sum(c.documents) > 0
ORDER BY c.space;

-- name: spaces_in_reach
-- The spaces of which a call that is held to places sees documents: their number, counted up to a limit in each scope, and
-- the largest of these counts.
SELECT n.space, sum(n.documents), max(n.documents)
FROM (
    SELECT
        space,
        (SELECT count(*) FROM (SELECT 1 AS counted FROM doc AS d WHERE d.place = p.id LIMIT :most) AS c) AS documents
    FROM doc_place AS p
    WHERE {of_dialects}
) AS n
GROUP BY n.space
HAVING sum(n.documents) > 0
ORDER BY n.space;

-- name: scopes
-- The scopes of a space from a name on, with the number of their memories, counted up to a limit.
SELECT
    p.scope,
    (SELECT count(*) FROM (SELECT 1 AS counted FROM doc AS d WHERE d.place = p.id LIMIT :most) AS n)
FROM doc_place AS p
WHERE
    p.space = :space AND p.scope >= :first
    AND EXISTS (SELECT 1 FROM doc AS d WHERE d.place = p.id)
ORDER BY p.scope
LIMIT :limit;

-- name: in_scope
-- The memories of a scope, the newest first.
SELECT d.id, d.key
FROM doc_place AS p
CROSS JOIN doc AS d ON d.place = p.id
WHERE p.space = :space AND p.scope = :scope AND d.id < :below
ORDER BY d.id DESC
LIMIT :limit;

-- name: children
-- The first keys of the memories and folders directly below a folder, found one after another in the index, with the
-- number of keys in each, counted up to a limit.
WITH RECURSIVE child (key) AS (
    SELECT min(d.key) FROM doc AS d WHERE d.space = :space AND d.key >= :first AND d.key < :high
    UNION ALL
    SELECT (
        SELECT min(d.key) FROM doc AS d WHERE d.space = :space AND d.key >= {beyond} AND d.key < :high
    )
    FROM child AS c
    WHERE c.key IS NOT NULL
)
SELECT
    c.key,
    (
        SELECT count(*)
        FROM (
            SELECT 1 AS counted
            FROM doc AS d
            WHERE d.space = :space AND d.key >= c.key AND d.key < {beyond}
            LIMIT :most
        ) AS n
    )
FROM child AS c
WHERE c.key IS NOT NULL
LIMIT :limit;

-- name: days
-- The number of documents last changed on each day from the given day on.
SELECT c.day, sum(c.documents)
FROM doc_day AS c
WHERE
    c.day >= :since
    AND {of_dialects}
GROUP BY c.day
ORDER BY c.day;

-- name: days_of_dialects
-- The same by dialect.
SELECT c.day, substr(c.space, 1, instr(c.space || ':', ':') - 1), sum(c.documents)
FROM doc_day AS c
WHERE
    c.day >= :since
    AND {of_dialects}
GROUP BY c.day, substr(c.space, 1, instr(c.space || ':', ':') - 1);

-- name: days_in_reach
-- The same of the documents that a call which is held to places sees, at most so many of the newest in each scope.
SELECT substr(d.updated_at, 1, 10), substr(s.space, 1, instr(s.space || ':', ':') - 1), count(*)
FROM (SELECT p.id, p.space FROM doc_place AS p WHERE {of_dialects}) AS s
CROSS JOIN doc AS d ON d.id IN (SELECT n.id FROM doc AS n WHERE n.place = s.id ORDER BY n.id DESC LIMIT :most)
WHERE d.updated_at >= :since
GROUP BY substr(d.updated_at, 1, 10), substr(s.space, 1, instr(s.space || ':', ':') - 1);

-- name: held
-- The number of flagged documents.
SELECT count(*)
FROM doc_flag AS f
CROSS JOIN doc AS d ON d.id = f.doc
WHERE {of_dialects};

-- name: flagged
-- Flagged documents, the newest first, with the beginning of their texts.
SELECT d.id, d.space, d.key, substr(d.text, 1, :chars), d.dialect, d.tool, d.actor, f.rule, f.at
FROM doc_flag AS f
CROSS JOIN doc AS d ON d.id = f.doc
WHERE
    f.doc < :below
    AND {of_dialects}
ORDER BY f.doc DESC
LIMIT :limit;

-- name: actors
-- The first actors that have written documents, found one after another in their index.
WITH RECURSIVE actors (actor) AS (
    SELECT min(d.actor) FROM doc AS d
    UNION ALL
    SELECT (SELECT min(d.actor) FROM doc AS d WHERE d.actor > a.actor) FROM actors AS a WHERE a.actor IS NOT NULL
)
SELECT a.actor FROM actors AS a WHERE a.actor IS NOT NULL LIMIT :limit;

-- name: document
SELECT p.scope, substr(d.text, 1, :chars), d.dialect, d.tool, d.actor, d.created_at, d.updated_at, f.rule
FROM doc AS d
JOIN doc_place AS p ON p.id = d.place
LEFT JOIN doc_flag AS f ON f.doc = d.id
WHERE d.space = :space AND d.key = :key;

-- name: alike
-- The memories whose keys lie in a range, in every space or in one.
SELECT s.space, d.key
FROM (SELECT DISTINCT space FROM doc_day) AS s
CROSS JOIN doc AS d ON d.space = s.space AND d.key >= :low AND d.key < :high
WHERE :space IS NULL OR s.space = :space
ORDER BY s.space, d.key
LIMIT :limit;

-- name: neighbours
-- The memories whose keys come next before and after a key in its space.
SELECT n.space, n.key
FROM (
    SELECT d.space, d.key FROM doc AS d WHERE d.space = :space AND d.key < :key ORDER BY d.key DESC LIMIT :limit
) AS n
UNION ALL
SELECT n.space, n.key
FROM (SELECT d.space, d.key FROM doc AS d WHERE d.space = :space AND d.key > :key ORDER BY d.key LIMIT :limit) AS n;

-- name: previews
-- The beginnings of the texts of memories, or of the last texts of those that are gone.
SELECT
    p.value ->> 0, p.value ->> 1,
    coalesce(
        (SELECT substr(d.text, 1, :chars) FROM doc AS d WHERE d.space = p.value ->> 0 AND d.key = p.value ->> 1),
        (
            SELECT substr(coalesce(h.after, h.before), 1, :chars)
            FROM history AS h
            WHERE h.space = p.value ->> 0 AND h.key = p.value ->> 1
            ORDER BY h.id DESC
            LIMIT 1
        ),
        ''
    )
FROM json_each(:places) AS p;

-- name: leaves
-- The beginnings of the texts of memories that are there, with their writers and the times of their last changes.
SELECT d.space, d.key, substr(d.text, 1, :chars), d.actor, d.updated_at
FROM json_each(:places) AS p
CROSS JOIN doc AS d ON d.space = p.value ->> 0 AND d.key = p.value ->> 1
ORDER BY p.key;

-- name: versions
-- The events of a memory, newest first, with the beginnings of their texts.
SELECT {event}
FROM history AS h
WHERE h.space = :space AND h.key = :key AND h.id < :below
ORDER BY h.id DESC
LIMIT :limit;

-- name: timeline
-- The events of all memories, newest first; a null parameter excludes nothing.
SELECT {event}
FROM history AS h
WHERE
    h.id < :below
    AND {of_dialects}
    AND (:actor IS NULL OR h.actor = :actor)
    AND (:operation IS NULL OR h.operation = :operation)
ORDER BY h.id DESC
LIMIT :limit;

-- name: session_events
-- The events of the memories that a session has, newest first; a null parameter excludes nothing.
SELECT {event}
FROM doc_place AS p
CROSS JOIN doc AS d ON d.place = p.id
CROSS JOIN history AS h ON h.space = d.space AND h.key = d.key
WHERE
    p.space = :space AND p.scope = :session
    AND h.id < :below
    AND (:actor IS NULL OR h.actor = :actor)
    AND (:operation IS NULL OR h.operation = :operation)
ORDER BY h.id DESC
LIMIT :limit;

-- name: sessions
-- The scopes of a space by their newest memory, with the number of their memories and the times of the first and last.
SELECT s.newest, s.scope, (SELECT count(*) FROM doc AS d WHERE d.place = s.place), first.created_at, last.updated_at
FROM (
    SELECT
        p.id AS place, p.scope,
        (SELECT min(d.id) FROM doc AS d WHERE d.place = p.id) AS oldest,
        (SELECT max(d.id) FROM doc AS d WHERE d.place = p.id) AS newest
    FROM doc_place AS p
    WHERE p.space = :space
) AS s
CROSS JOIN doc AS first ON first.id = s.oldest
CROSS JOIN doc AS last ON last.id = s.newest
WHERE s.newest < :below
ORDER BY s.newest DESC
LIMIT :limit;

-- name: calls
-- The rows of the audit, newest first; a null parameter excludes nothing.
SELECT
    {call},
    EXISTS (SELECT 1 FROM undo AS u WHERE u.audit = a.id) AS undoable
FROM audit AS a
WHERE
    a.id < :below
    AND (:dialects IS NULL OR a.dialect IN (SELECT value FROM json_each(:dialects)))
    AND (:actor IS NULL OR a.actor = :actor)
ORDER BY a.id DESC
LIMIT :limit;

-- name: calls_of
-- Of the newest calls those that touched a memory; :part is a part of its key that JSON writes as it is.
SELECT
    {call},
    EXISTS (SELECT 1 FROM undo AS u WHERE u.audit = a.id) AS undoable
FROM audit AS a
WHERE
    a.id > (SELECT max(n.id) FROM audit AS n) - :among
    AND instr(a.targets, :part) > 0
    AND EXISTS (SELECT 1 FROM json_each(a.targets) AS t WHERE t.value ->> 0 = :space AND t.value ->> 1 = :key)
ORDER BY a.id DESC
LIMIT :limit;

-- name: deleted_about
-- The memories that were deleted, last deleted first, whose last text holds every word, in lower case.
SELECT h.space || '/' || h.key, h.before
FROM history AS h
WHERE
    h.before IS NOT NULL AND h.after IS NULL
    AND NOT EXISTS (SELECT 1 FROM json_each(:words) AS w WHERE instr(lower(h.before), w.value) = 0)
    AND NOT EXISTS (SELECT 1 FROM history AS l WHERE l.space = h.space AND l.key = h.key AND l.id > h.id)
    AND NOT EXISTS (SELECT 1 FROM doc AS d WHERE d.space = h.space AND d.key = h.key)
ORDER BY h.id DESC
LIMIT :limit;

-- name: history_about
-- The memories, and links between them, of which a text in the history holds every word, in lower case.
SELECT h.space || '/' || h.key
FROM history AS h
WHERE
    NOT EXISTS (
        SELECT 1 FROM json_each(:words) AS w
        WHERE instr(lower(coalesce(h.before, '')), w.value) = 0 AND instr(lower(coalesce(h.after, '')), w.value) = 0
    )
GROUP BY h.space, h.key
ORDER BY h.space, h.key
LIMIT :limit;

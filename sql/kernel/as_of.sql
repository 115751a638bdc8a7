-- name: changed
-- The memories that stood at a time and have changed since, last changed before it first: the last event up to that
-- time, the first after it, and the size of the text. Of the changes since, the first :scanned are looked at. A null
-- parameter excludes nothing. If a call was undone, an earlier event says who wrote the text and when. In the spaces
-- :fixed the scope was the same as today; the scope of memories that left the index is not known here.
SELECT p.id, e.id, octet_length(p.after)
FROM (
    SELECT h.id, h.space, h.key
    FROM history AS h INDEXED BY history_by_change
    WHERE
        h.before IS NOT NULL AND h.at > :at
        AND (:spaces IS NULL OR h.space IN (SELECT value FROM json_each(:spaces)))
        AND substr(h.space, 1, instr(h.space || ':', ':') - 1) IN (SELECT value FROM json_each(:dialects))
        AND h.space NOT IN (SELECT value FROM json_each(:unrecorded))
        AND (:folder = '' OR h.space <> 'paths' OR substr(h.key, 1, length(:folder)) = :folder)
    ORDER BY h.at, h.space, h.key
    LIMIT :scanned
) AS e
CROSS JOIN history AS p ON p.id = (
    SELECT max(o.id) FROM history AS o WHERE o.space = e.space AND o.key = e.key AND o.id < e.id
)
WHERE
    p.at <= :at AND p.at >= :after AND p.after IS NOT NULL
    AND (p.operation = 'undone' OR (p.at < :before AND (:actor IS NULL OR p.actor = :actor)))
    AND (
        :scopes IS NULL
        OR e.space NOT IN (SELECT value FROM json_each(:fixed))
        OR coalesce(
            (
                SELECT s.scope IN (SELECT value FROM json_each(:scopes))
                FROM doc AS d CROSS JOIN doc_place AS s ON s.id = d.place
                WHERE d.space = e.space AND d.key = e.key
            ),
            true
        )
    )
ORDER BY p.at DESC, p.id DESC
LIMIT :limit;

-- name: changed_of
-- The same of the given (space, key) pairs.
SELECT p.id, e.id, octet_length(p.after)
FROM json_each(:keys) AS k
CROSS JOIN history AS e ON e.id = (
    SELECT min(o.id) FROM history AS o WHERE o.space = k.value ->> 0 AND o.key = k.value ->> 1 AND o.at > :at
)
CROSS JOIN history AS p ON p.id = (
    SELECT max(o.id) FROM history AS o WHERE o.space = e.space AND o.key = e.key AND o.id < e.id
)
WHERE p.after IS NOT NULL
ORDER BY p.at DESC, p.id DESC
LIMIT :limit;

-- name: by_words
-- Of such events the first with about :bytes of text, those with most of the words first.
SELECT c.stood, c.changed, c.size
FROM (
    SELECT
        i.value ->> 0 AS stood, i.value ->> 1 AS changed, i.value ->> 2 AS size, i.key AS position,
        sum(CAST(i.value ->> 2 AS INTEGER)) OVER (ORDER BY i.key) AS total
    FROM json_each(:events) AS i
) AS c
CROSS JOIN history AS p ON p.id = c.stood
WHERE c.total - c.size < :bytes
ORDER BY
    (
        SELECT count(*) FROM json_each(:words) AS t
        WHERE
            instr(lower(p.after), lower(CAST(t.value AS text))) > 0
            OR instr(lower(p.key), lower(CAST(t.value AS text))) > 0
    ) DESC,
    c.position;

-- name: states
-- The memories of such pairs of events as they stood, with the reason of the change, and their scope today, null if
-- they are not in the index. A memory is as old as the last event before which it was not there.
SELECT
    p.id, p.space, p.key, p.after, s.scope, e.reason, w.dialect, w.tool, w.actor,
    coalesce(
        (
            SELECT o.at FROM history AS o
            WHERE
                o.space = p.space AND o.key = p.key AND o.id <= w.id AND o.after IS NOT NULL AND o.operation <> 'undone'
                AND coalesce(
                    (
                        SELECT b.after IS NULL FROM history AS b
                        WHERE b.space = o.space AND b.key = o.key AND b.id < o.id
                        ORDER BY b.id DESC
                        LIMIT 1
                    ),
                    true
                )
            ORDER BY o.id DESC
            LIMIT 1
        ),
        w.at
    ),
    w.at
FROM json_each(:events) AS i
CROSS JOIN history AS p ON p.id = i.value ->> 0
CROSS JOIN history AS e ON e.id = i.value ->> 1
CROSS JOIN history AS w ON w.id = coalesce(
    (
        SELECT max(o.id) FROM history AS o
        WHERE
            p.operation = 'undone' AND o.space = p.space AND o.key = p.key AND o.id < p.id
            AND o.after = p.after AND o.operation <> 'undone'
    ),
    p.id
)
LEFT JOIN doc AS d ON d.space = p.space AND d.key = p.key
LEFT JOIN doc_place AS s ON s.id = d.place;

-- name: unchanged
-- Those of the given documents that stood at a time and have no event since, last changed first.
SELECT d.id
FROM json_each(:ids) AS i
CROSS JOIN doc AS d ON d.id = i.value
WHERE
    d.created_at <= :at AND d.updated_at <= :at
    AND coalesce(
        (SELECT h.at FROM history AS h WHERE h.space = d.space AND h.key = d.key ORDER BY h.id DESC LIMIT 1), ''
    ) <= :at
ORDER BY d.updated_at DESC, d.id DESC;

-- name: newest_unchanged
-- The same of all documents; null actor or partitions exclude nothing.
SELECT d.id
FROM doc AS d INDEXED BY doc_by_time
WHERE
    d.updated_at >= :after AND d.updated_at < :before AND d.created_at <= :at
    AND (:actor IS NULL OR d.actor = :actor)
    AND (:partitions IS NULL OR d.place IN (SELECT value FROM json_each(:partitions)))
    AND (:folder = '' OR d.space <> 'paths' OR substr(d.key, 1, length(:folder)) = :folder)
    AND coalesce(
        (SELECT h.at FROM history AS h WHERE h.space = d.space AND h.key = d.key ORDER BY h.id DESC LIMIT 1), ''
    ) <= :at
ORDER BY d.updated_at DESC, d.id DESC
LIMIT :limit OFFSET :offset;

-- name: count_unrecorded
-- The documents of spaces without a history that stood at a time and have changed since, and without a scope those that
-- are gone; a null scope is any.
SELECT (
    SELECT count(*)
    FROM doc_place AS p
    CROSS JOIN doc AS d ON d.place = p.id
    WHERE
        p.space IN (SELECT value FROM json_each(:spaces))
        AND (:scopes IS NULL OR p.scope IN (SELECT value FROM json_each(:scopes)))
        AND d.created_at <= :at AND d.updated_at > :at
) + (
    SELECT count(DISTINCT h.space || '/' || h.key)
    FROM history AS h
    WHERE
        :scopes IS NULL AND h.space IN (SELECT value FROM json_each(:spaces))
        AND h.at > :at AND h.before IS NOT NULL AND h.after IS NULL
        AND EXISTS (SELECT 1 FROM history AS e WHERE e.space = h.space AND e.key = h.key AND e.at <= :at)
        AND NOT EXISTS (
            SELECT 1
            FROM doc_place AS p
            CROSS JOIN doc AS d ON d.place = p.id AND d.key = h.key
            WHERE p.space = h.space
        )
);

-- name: document_frequencies
SELECT s.value, t.doc
FROM json_each(:stems) AS s
CROSS JOIN doc_term AS t ON t.term = s.value;

-- name: lock
-- Of the movers of a tenant, until the session ends; the first number is "QUMV".
SELECT pg_try_advisory_lock(1364544854, CAST(:number AS integer));

-- name: lock_alone
-- The same lock until the end of the transaction, for who lets nobody move the tenant.
SELECT pg_try_advisory_xact_lock(1364544854, CAST(:number AS integer));

-- name: pause
-- The lock of the writers of a tenant.
SELECT pg_advisory_xact_lock(1364543824, CAST(:number AS integer));

-- name: expect
-- Makes room for a tenant that arrives.
INSERT INTO directory (name, mover) VALUES (:tenant, 0) ON CONFLICT DO NOTHING;

-- name: find
SELECT id, moved_to IS NULL AND mover IS NULL FROM directory WHERE name = :tenant FOR UPDATE;

-- name: claim
UPDATE directory
SET mover = :mover, moves = :moves, moved_to = NULL, came_from = :address
WHERE id = :number;

-- name: claimed
-- Whether the tenant is expected from this mover, which stays so for the transaction.
SELECT id FROM directory WHERE id = :number AND mover = :mover FOR UPDATE;

-- name: leave
-- From the commit of this on, the other place is right.
UPDATE directory SET moved_to = :address WHERE id = :number;

-- name: arrived
UPDATE directory SET mover = NULL WHERE id = :number;

-- name: came_from
SELECT came_from FROM directory WHERE id = :number;

-- name: left
-- The number of a tenant that has left, and does not come back during the transaction.
SELECT id FROM directory WHERE name = :tenant AND moved_to IS NOT NULL FOR UPDATE;

-- name: cleared
UPDATE directory SET came_from = NULL WHERE id = :number;

-- name: tables
-- The tables of tenants with their columns, and those of the key, both without the tenant. The changes of a call
-- are taken before it commits, and are left out.
SELECT
    CAST(c.relname AS text),
    string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
    string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE a.attnum = ANY (i.indkey))
FROM pg_class AS c
JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE
    c.relkind = 'r' AND c.relnamespace = CAST('quipu_data' AS regnamespace) AND c.relname <> 'row_change'
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attname <> 'tenant'
GROUP BY c.relname
ORDER BY c.relname;

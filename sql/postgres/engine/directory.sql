-- name: find
SELECT address FROM placement WHERE name = :tenant;

-- name: lock
-- Of who places tenants; the first number is "QUIP", as for the writers of tenants, of which none has the second.
SELECT pg_advisory_xact_lock(1364543824, -2);

-- name: fewest
-- The database with the fewest tenants of those that take new tenants.
SELECT s.address
FROM server AS s
LEFT JOIN placement AS p ON p.address = s.address
GROUP BY s.address
ORDER BY count(p.name), s.address
LIMIT 1;

-- name: place
INSERT INTO placement (name, address) VALUES (:tenant, :address);

-- name: repoint
UPDATE placement SET address = :after WHERE name = :tenant AND address = :before;

-- name: number
SELECT id FROM directory WHERE name = :tenant;

-- name: add
-- Returns no row if the tenant was added meanwhile.
INSERT INTO directory (name) VALUES (:tenant) ON CONFLICT DO NOTHING
RETURNING id;

-- name: keep_ids
-- Counts the ids of the rows that a new tenant begins with.
SELECT keep_ids();

-- name: state
-- How often a tenant has moved, its new address, and whether it is here.
SELECT moves, moved_to, moved_to IS NULL AND mover IS NULL FROM directory WHERE id = :number;

-- name: arrive
-- For a tenant that has left the place before for this database: it is whole here, even if its mover was killed.
UPDATE directory SET mover = NULL WHERE name = :tenant AND moves = :moves AND mover IS NOT NULL;

-- name: add_server
INSERT INTO server (address) VALUES (:address) ON CONFLICT DO NOTHING;

-- name: remove_server
DELETE FROM server WHERE address = :address;

-- name: tenants
SELECT name, address FROM placement ORDER BY name;

-- name: servers
-- Every database, whether it takes new tenants, and how many it has.
SELECT a.address, bool_or(a.taking), CAST(sum(a.tenants) AS bigint)
FROM (
    SELECT address, true AS taking, 0 AS tenants FROM server
    UNION ALL
    SELECT address, false, 1 FROM placement
) AS a
GROUP BY a.address
ORDER BY a.address;

-- name: identify
-- False if another session has the lock, which belongs to a database.
SELECT pg_try_advisory_xact_lock(CAST(:key AS bigint));

-- name: bury
-- No tenant has a name with a blank, and who still knows the number reads that the tenant has left.
UPDATE directory SET name = 'removed ' || id, moved_to = '' WHERE id = :number;

-- name: unplace
DELETE FROM placement WHERE name = :tenant;

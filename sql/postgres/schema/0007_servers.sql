-- Tenants may be spread over several databases. The one that servers are started with, the home, has the directory of
-- all of them; every one has the rows of its own tenants in quipu.directory.

-- Who writes looks here, under the lock of the tenant; who reads, in its snapshot.
ALTER TABLE quipu.directory
ADD COLUMN moves integer NOT NULL DEFAULT 0,
ADD COLUMN moved_to text COLLATE "C",
ADD COLUMN mover bigint,
ADD COLUMN came_from text COLLATE "C";

COMMENT ON COLUMN quipu.directory.moves IS 'how often the tenant has moved, the move to here included';
COMMENT ON COLUMN quipu.directory.moved_to IS 'the address that it has left for; null while it is here';
COMMENT ON COLUMN quipu.directory.mover IS 'who copies it to here, until it has arrived';
COMMENT ON COLUMN quipu.directory.came_from IS 'where rows of it are yet to be deleted';

-- Where each tenant was seen last, as an address; the empty one is this database.
CREATE TABLE quipu.placement (
    name text COLLATE "C" PRIMARY KEY,
    address text COLLATE "C" NOT NULL
);

INSERT INTO quipu.placement (name, address) SELECT name, '' FROM quipu.directory;

-- The databases that take new tenants.
CREATE TABLE quipu.server (
    address text COLLATE "C" PRIMARY KEY
);

INSERT INTO quipu.server (address) VALUES ('');

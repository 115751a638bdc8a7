-- Files of the data directory that all servers of a database share, as the keys are; they belong to no tenant.
CREATE TABLE quipu.shared_file (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    content text COLLATE "C" NOT NULL
);

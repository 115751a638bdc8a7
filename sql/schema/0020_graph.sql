-- `seq` is the order of insertion, in which everything is listed. `lowered` is what a search for a substring reads:
-- name, type and observations line by line in lower case, which SQLite makes of ASCII only.
CREATE TABLE graph_entity (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    entity_type TEXT NOT NULL,
    lowered TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE graph_observation (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    entity INTEGER NOT NULL REFERENCES graph_entity (seq),
    text TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX graph_observation_by_entity ON graph_observation (entity);

-- By names, since the entities at the ends need not exist.
CREATE TABLE graph_relation (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    from_name TEXT NOT NULL,
    to_name TEXT NOT NULL,
    relation_type TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (from_name, to_name, relation_type)
) STRICT;

CREATE INDEX graph_relation_by_end ON graph_relation (to_name);

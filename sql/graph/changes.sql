-- name: add_entities
-- Rows are (name, type, lowered text). Returns those whose name was free.
INSERT INTO graph_entity (name, entity_type, lowered, created_at)
SELECT value ->> 0, value ->> 1, value ->> 2, :now FROM jsonb_each(:rows) WHERE true
ON CONFLICT (name) DO NOTHING
RETURNING name, seq;

-- name: add_observations
-- Rows are (entity, text).
INSERT INTO graph_observation (entity, text, created_at)
SELECT value ->> 0, value ->> 1, :now FROM jsonb_each(:rows);

-- name: set_lowered
-- Rows are (entity, lowered text).
UPDATE graph_entity SET lowered = r.value ->> 1
FROM jsonb_each(:rows) AS r
WHERE graph_entity.seq = r.value ->> 0;

-- name: spelled
-- Those of the names that an entity or an end of a relation has.
SELECT n.value
FROM json_each(:names) AS n
WHERE
    EXISTS (SELECT 1 FROM graph_entity AS e WHERE e.name = n.value)
    OR EXISTS (SELECT 1 FROM graph_relation AS r WHERE r.from_name = n.value)
    OR EXISTS (SELECT 1 FROM graph_relation AS r WHERE r.to_name = n.value);

-- name: relations
-- Those of the rows (from, to, type) that are there.
SELECT from_name, to_name, relation_type
FROM graph_relation
WHERE (from_name, to_name, relation_type) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(:rows));

-- name: by_names
SELECT seq, name, entity_type FROM graph_entity WHERE name IN (SELECT value FROM json_each(:names));

-- name: observations
-- In the order of insertion.
SELECT entity, seq, text FROM graph_observation WHERE entity IN (SELECT value FROM json_each(:entities)) ORDER BY seq;

-- name: delete_observations
DELETE FROM graph_observation WHERE seq IN (SELECT value FROM json_each(:seqs));

-- name: delete_observations_of
DELETE FROM graph_observation WHERE entity IN (SELECT value FROM json_each(:entities));

-- name: delete_entities
DELETE FROM graph_entity WHERE seq IN (SELECT value FROM json_each(:entities));

-- name: add_relations
-- Rows are (from, to, type). Returns those that were not there.
INSERT INTO graph_relation (from_name, to_name, relation_type, created_at)
SELECT value ->> 0, value ->> 1, value ->> 2, :now FROM jsonb_each(:rows) WHERE true
ON CONFLICT (from_name, to_name, relation_type) DO NOTHING
RETURNING from_name, to_name, relation_type;

-- name: delete_relations
-- Rows are (from, to, type). Returns those that were there.
DELETE FROM graph_relation
WHERE (from_name, to_name, relation_type) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM jsonb_each(:rows))
RETURNING from_name, to_name, relation_type;

-- name: delete_relations_at
-- Returns the relations that had any of these names at an end.
DELETE FROM graph_relation
WHERE from_name IN (SELECT value FROM json_each(:names)) OR to_name IN (SELECT value FROM json_each(:names))
RETURNING from_name, to_name, relation_type;

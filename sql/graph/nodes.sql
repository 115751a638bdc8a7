-- fragment: entities
-- Entities with their observations as a JSON array.
SELECT
    e.name,
    e.entity_type,
    (SELECT json_group_array(o.text ORDER BY o.seq) FROM graph_observation AS o WHERE o.entity = e.seq) AS observations
FROM graph_entity AS e;

-- name: all_entities
{entities}
ORDER BY e.seq;

-- name: by_names
{entities}
WHERE e.name IN (SELECT value FROM json_each(:names))
ORDER BY e.seq;

-- name: containing
-- Those with a text in their name, type and observations, line by line in lower case; null for a form that is the same.
{entities}
WHERE instr(e.lowered, :part) > 0 OR instr(e.lowered, :composed) > 0 OR instr(e.lowered, :decomposed) > 0
ORDER BY e.seq;

-- name: all_relations
SELECT from_name, to_name, relation_type FROM graph_relation ORDER BY seq;

-- name: relations_at
-- Those with any of these names at an end.
SELECT from_name, to_name, relation_type
FROM graph_relation
WHERE from_name IN (SELECT value FROM json_each(:names)) OR to_name IN (SELECT value FROM json_each(:names))
ORDER BY seq;

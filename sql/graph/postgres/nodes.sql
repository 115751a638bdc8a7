-- name: all_entities
SELECT
    e.name,
    e.entity_type,
    (
        SELECT json_texts(json_agg(o.text ORDER BY o.seq))
        FROM graph_observation AS o
        WHERE o.entity = e.seq
    ) AS observations
FROM graph_entity AS e
ORDER BY e.seq;

-- name: by_names
SELECT
    e.name,
    e.entity_type,
    (
        SELECT json_texts(json_agg(o.text ORDER BY o.seq))
        FROM graph_observation AS o
        WHERE o.entity = e.seq
    ) AS observations
FROM graph_entity AS e
WHERE e.name IN (SELECT value FROM json_each(:names))
ORDER BY e.seq;

-- name: containing
SELECT
    e.name,
    e.entity_type,
    (
        SELECT json_texts(json_agg(o.text ORDER BY o.seq))
        FROM graph_observation AS o
        WHERE o.entity = e.seq
    ) AS observations
FROM graph_entity AS e
WHERE instr(e.lowered, :part) > 0
ORDER BY e.seq;

-- name: index_texts
SELECT e.id, e.name, e.entity_type, (
    SELECT string_agg(s.content, chr(10) ORDER BY s.id DESC) FROM sessions_observation AS s
    WHERE s.entity_id = e.id AND s.memory_id IS NULL
), (
    SELECT string_agg(n.content, chr(10) ORDER BY n.id DESC)
    FROM (
        SELECT o.id, o.content FROM sessions_observation AS o
        WHERE o.entity_id = e.id AND o.memory_id IS NOT NULL ORDER BY o.id DESC LIMIT 50
    ) AS n
)
FROM json_each(:ids) AS i
CROSS JOIN sessions_entity AS e ON e.id = i.value;

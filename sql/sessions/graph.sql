-- fragment: of_entity
-- The relations from and to an entity.
SELECT id FROM sessions_relation WHERE source_id = :id
UNION
SELECT id FROM sessions_relation WHERE target_id = :id;

-- name: memory_id
SELECT id FROM sessions_memory WHERE id = :id;

-- name: add_entity
-- The generic type `entity` never replaces another type.
INSERT INTO sessions_entity (name, entity_type, stated, created_at)
VALUES (:name, :entity_type, :stated, :now)
ON CONFLICT (name) DO UPDATE SET
    entity_type = CASE
        WHEN excluded.entity_type = 'entity' THEN sessions_entity.entity_type
        ELSE excluded.entity_type
    END,
    stated = max(sessions_entity.stated, excluded.stated)
RETURNING id;

-- name: add_mentioned
-- Rows are (name, entity_type); an existing type is kept unless it is `entity`.
INSERT INTO sessions_entity (name, entity_type, stated, created_at)
SELECT value ->> 0, value ->> 1, 0, :now FROM jsonb_each(:rows) WHERE true
ON CONFLICT (name) DO UPDATE SET
    entity_type = CASE
        WHEN sessions_entity.entity_type = 'entity' THEN excluded.entity_type
        ELSE sessions_entity.entity_type
    END
RETURNING id;

-- name: add_observations
-- Rows are (entity, text); equal observations of one memory are kept once.
INSERT INTO sessions_observation (entity_id, content, memory_id, created_at)
SELECT r.value ->> 0, r.value ->> 1, :memory_id, :now
FROM jsonb_each(:rows) AS r
WHERE (r.value ->> 0, r.value ->> 1) NOT IN (
    SELECT o.entity_id, o.content
    FROM sessions_observation AS o
    WHERE o.memory_id IS :memory_id AND o.entity_id IN (SELECT s.value ->> 0 FROM jsonb_each(:rows) AS s)
);

-- name: add_relation
INSERT INTO sessions_relation (source_id, target_id, relation_type, stated, created_at)
VALUES (:source_id, :target_id, :relation_type, :stated, :now)
ON CONFLICT (source_id, target_id, relation_type) DO UPDATE
SET stated = max(sessions_relation.stated, excluded.stated)
RETURNING id;

-- name: add_relation_memory
INSERT INTO sessions_relation_memory (memory_id, relation_id) VALUES (:memory_id, :relation_id)
ON CONFLICT (memory_id, relation_id) DO NOTHING;

-- name: index_texts
-- The parts of the indexed text: name, type, the observations of no memory, and the newest 50 of memories.
SELECT e.id, e.name, e.entity_type, (
    SELECT group_concat(s.content, char(10) ORDER BY s.id DESC) FROM sessions_observation AS s
    WHERE s.entity_id = e.id AND s.memory_id IS NULL
), (
    SELECT group_concat(n.content, char(10) ORDER BY n.id DESC)
    FROM (
        SELECT o.id, o.content FROM sessions_observation AS o
        WHERE o.entity_id = e.id AND o.memory_id IS NOT NULL ORDER BY o.id DESC LIMIT 50
    ) AS n
)
FROM json_each(:ids) AS i
CROSS JOIN sessions_entity AS e ON e.id = i.value;

-- name: entity_ids
SELECT id FROM sessions_entity ORDER BY id;

-- name: newest_entity
SELECT id FROM sessions_entity ORDER BY id DESC LIMIT 1;

-- name: first_entities
SELECT id FROM sessions_entity WHERE id <= :upto ORDER BY id LIMIT :limit;

-- name: spelled
-- Those of the names that entities have.
SELECT name FROM sessions_entity WHERE name IN (SELECT value FROM json_each(:names));

-- name: by_name
SELECT id, name, entity_type, created_at FROM sessions_entity WHERE name = :name;

-- name: observations
-- The newest 50 texts, each as its newest observation.
SELECT o.content, o.memory_id
FROM sessions_observation AS o
WHERE
    o.entity_id = :entity_id
    AND NOT EXISTS (
        SELECT 1 FROM sessions_observation AS n
        WHERE n.entity_id = o.entity_id AND n.id > o.id AND n.content = o.content
    )
ORDER BY o.id DESC
LIMIT 50;

-- name: relations
-- The newest relations that touch any of the given entities.
SELECT r.relation_type, s.name, t.name
FROM sessions_relation AS r
JOIN sessions_entity AS s ON s.id = r.source_id
JOIN sessions_entity AS t ON t.id = r.target_id
WHERE r.id IN (
    SELECT id FROM sessions_relation WHERE source_id IN (SELECT value FROM json_each(:ids))
    UNION
    SELECT id FROM sessions_relation WHERE target_id IN (SELECT value FROM json_each(:ids))
)
ORDER BY r.id DESC
LIMIT :limit;

-- name: relations_of
-- The newest relations from and to an entity.
SELECT r.relation_type, r.source_id, r.target_id
FROM sessions_relation AS r
WHERE r.id IN ({of_entity})
ORDER BY r.id DESC
LIMIT :limit;

-- name: memories_of
-- The newest memories with an observation of an entity.
SELECT DISTINCT o.memory_id
FROM sessions_observation AS o
WHERE o.entity_id = :entity_id AND o.memory_id IS NOT NULL
ORDER BY o.memory_id DESC
LIMIT :limit;

-- name: entities_of_memory
-- The entities that a memory mentions, says something of, or relates.
SELECT e.id
FROM sessions_entity AS e
WHERE
    e.name IN (SELECT name FROM sessions_mention WHERE memory_id = :memory_id)
    OR e.id IN (SELECT entity_id FROM sessions_observation WHERE memory_id = :memory_id)
    OR e.id IN (
        SELECT r.source_id
        FROM sessions_relation_memory AS m
        JOIN sessions_relation AS r ON r.id = m.relation_id
        WHERE m.memory_id = :memory_id
    )
    OR e.id IN (
        SELECT r.target_id
        FROM sessions_relation_memory AS m
        JOIN sessions_relation AS r ON r.id = m.relation_id
        WHERE m.memory_id = :memory_id
    )
ORDER BY e.id
LIMIT :limit;

-- name: entities_of_memories
-- The entities with an observation or a relation of any of these memories.
SELECT entity_id FROM sessions_observation WHERE memory_id IN (SELECT value FROM json_each(:memories))
UNION
SELECT r.source_id
FROM sessions_relation_memory AS m
JOIN sessions_relation AS r ON r.id = m.relation_id
WHERE m.memory_id IN (SELECT value FROM json_each(:memories))
UNION
SELECT r.target_id
FROM sessions_relation_memory AS m
JOIN sessions_relation AS r ON r.id = m.relation_id
WHERE m.memory_id IN (SELECT value FROM json_each(:memories));

-- name: newest
SELECT id, name, entity_type, created_at FROM sessions_entity ORDER BY id DESC LIMIT :limit;

-- name: by_ids
SELECT e.id, e.name, e.entity_type, e.created_at
FROM json_each(:ids) AS i
CROSS JOIN sessions_entity AS e ON e.id = i.value
ORDER BY i.key;

-- name: by_name_nocase
-- Entities of this name, in any case.
SELECT id, name, entity_type, created_at FROM sessions_entity
WHERE name = :name COLLATE NOCASE ORDER BY id DESC LIMIT :limit;

-- name: name_contains
SELECT id, name, entity_type, created_at FROM sessions_entity
WHERE instr(lower(name), lower(:part)) > 0 ORDER BY id DESC LIMIT :limit;

-- name: delete_observations
-- Returns the entities of the deleted observations.
DELETE FROM sessions_observation WHERE memory_id IN (SELECT value FROM json_each(:memories))
RETURNING entity_id;

-- name: delete_relation_memories
-- Returns the relations of the deleted rows.
DELETE FROM sessions_relation_memory WHERE memory_id IN (SELECT value FROM json_each(:memories))
RETURNING relation_id;

-- name: delete_unsupported_relations
-- Those of the given relations that no memory supports any more. Returns their ends.
DELETE FROM sessions_relation
WHERE
    id IN (SELECT value FROM json_each(:ids))
    AND stated = 0
    AND NOT EXISTS (SELECT 1 FROM sessions_relation_memory AS m WHERE m.relation_id = sessions_relation.id)
RETURNING source_id, target_id;

-- name: delete_unsupported_entities
-- Those of the given entities without observations and relations.
DELETE FROM sessions_entity
WHERE
    id IN (SELECT value FROM json_each(:ids))
    AND stated = 0
    AND NOT EXISTS (SELECT 1 FROM sessions_observation AS o WHERE o.entity_id = sessions_entity.id)
    AND NOT EXISTS (SELECT 1 FROM sessions_relation AS r WHERE r.source_id = sessions_entity.id)
    AND NOT EXISTS (SELECT 1 FROM sessions_relation AS r WHERE r.target_id = sessions_entity.id)
RETURNING id;

-- name: delete_observation
DELETE FROM sessions_observation WHERE entity_id = :id AND content = :content;

-- name: delete_observations_of
DELETE FROM sessions_observation WHERE entity_id = :id;

-- name: delete_relation_memories_of
-- Of the relations from and to an entity.
DELETE FROM sessions_relation_memory WHERE relation_id IN ({of_entity});

-- name: delete_relations_of
DELETE FROM sessions_relation WHERE id IN ({of_entity});

-- name: delete_entity
DELETE FROM sessions_entity WHERE id = :id;

-- Of documents up to this one the index may hold less than their rows say: of a note with a summary, not its content.
INSERT INTO setting (name, value)
SELECT 'index_texts_outdated_to', max(d.id)
FROM doc_place AS p
JOIN doc AS d ON d.place = p.id
WHERE (p.space LIKE 'brain:%' AND p.scope <> 'memory') OR p.space = 'sessions:entity'
HAVING count(*) > 0;

-- What no memory holds is all in the text of an entity.
CREATE INDEX sessions_observation_stated ON sessions_observation (entity_id, id) WHERE memory_id IS NULL;

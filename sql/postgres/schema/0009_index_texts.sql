-- As sql/schema/0024: of documents up to this one the index may hold less than their rows say.
INSERT INTO quipu_data.setting (tenant, name, value)
SELECT d.tenant, 'index_texts_outdated_to', CAST(max(d.id) AS text)
FROM quipu_data.doc_place AS p
JOIN quipu_data.doc AS d ON d.tenant = p.tenant AND d.place = p.id
WHERE d.tenant > 0 AND ((p.space LIKE 'brain:%' AND p.scope <> 'memory') OR p.space = 'sessions:entity')
GROUP BY d.tenant;

CREATE INDEX sessions_observation_stated ON quipu_data.sessions_observation (tenant, entity_id, id)
WHERE memory_id IS NULL;

-- As sql/schema/0034: of documents up to this one the index may hold less than their rows say.
INSERT INTO quipu_data.setting (tenant, name, value)
SELECT d.tenant, 'index_texts_outdated_to', CAST(max(d.id) AS text)
FROM quipu_data.doc_place AS p
JOIN quipu_data.doc AS d ON d.tenant = p.tenant AND d.place = p.id
WHERE d.tenant > 0 AND (p.space LIKE 'brain:%' OR p.space LIKE 'scopes:%' OR p.space = 'sessions')
GROUP BY d.tenant
ON CONFLICT (tenant, name) DO UPDATE SET
    value = CAST(greatest(CAST(setting.value AS bigint), CAST(excluded.value AS bigint)) AS text);

-- As sql/schema/0035: of entries with tags up to this document the index may lack the tags.
INSERT INTO quipu_data.setting (tenant, name, value)
SELECT d.tenant, 'index_texts_outdated_to', CAST(max(d.id) AS text)
FROM quipu_data.doc_place AS p
JOIN quipu_data.doc AS d ON d.tenant = p.tenant AND d.place = p.id
WHERE
    d.tenant > 0
    AND p.space LIKE 'scopes:%'
    AND EXISTS (SELECT 1 FROM quipu_data.scopes_entry_tag AS t WHERE t.tenant = d.tenant)
GROUP BY d.tenant
ON CONFLICT (tenant, name) DO UPDATE SET
    value = CAST(greatest(CAST(setting.value AS bigint), CAST(excluded.value AS bigint)) AS text);

-- As sql/schema/0026: documents up to this one hold no stems of other languages than English.
INSERT INTO quipu_data.setting (tenant, name, value)
SELECT tenant, 'index_outdated_to', CAST(max(id) AS text) FROM quipu_data.doc WHERE tenant > 0 GROUP BY tenant
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value;

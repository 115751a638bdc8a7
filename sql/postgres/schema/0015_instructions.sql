-- As sql/schema/0031: documents up to this one have no mark of standing instructions.
INSERT INTO quipu_data.setting (tenant, name, value)
SELECT tenant, 'index_outdated_to', CAST(max(id) AS text) FROM quipu_data.doc WHERE tenant > 0 GROUP BY tenant
ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value;

-- Documents up to this one have no mark of standing instructions; the server renews them as it runs.
INSERT INTO setting (name, value)
SELECT 'index_outdated_to', max(id) FROM doc HAVING count(*) > 0
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

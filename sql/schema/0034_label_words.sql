-- Of documents up to this one the index may hold less than their rows say: not the labels, and not metadata of `brain`.
INSERT INTO setting (name, value)
SELECT 'index_texts_outdated_to', max(d.id)
FROM doc_place AS p
JOIN doc AS d ON d.place = p.id
WHERE p.space LIKE 'brain:%' OR p.space LIKE 'scopes:%' OR p.space = 'sessions'
HAVING count(*) > 0
ON CONFLICT (name) DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER));

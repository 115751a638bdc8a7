-- Of documents up to this one the index may hold less than their rows say: of tools and guidelines not the examples.
INSERT INTO setting (name, value)
SELECT 'index_texts_outdated_to', max(d.id)
FROM doc_place AS p
JOIN doc AS d ON d.place = p.id
WHERE p.space IN ('scopes:tools', 'scopes:guidelines')
HAVING count(*) > 0
ON CONFLICT (name) DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER));

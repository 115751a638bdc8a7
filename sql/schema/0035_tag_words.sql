-- Of entries with tags up to this document the index may lack the tags.
INSERT INTO setting (name, value)
SELECT 'index_texts_outdated_to', max(d.id)
FROM doc_place AS p
JOIN doc AS d ON d.place = p.id
WHERE p.space LIKE 'scopes:%' AND EXISTS (SELECT 1 FROM scopes_entry_tag)
HAVING count(*) > 0
ON CONFLICT (name) DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER));

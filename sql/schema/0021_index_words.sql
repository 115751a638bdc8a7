-- Documents up to this one hold the words and vectors of an earlier release; the server renews them as it runs.
INSERT INTO setting (name, value)
SELECT 'index_outdated_to', max(id) FROM doc HAVING count(*) > 0;

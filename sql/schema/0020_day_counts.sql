-- How many documents of a space were last changed on a day, so that nobody counts a million of them to show a number.
CREATE TABLE doc_day (
    space TEXT NOT NULL,
    day TEXT NOT NULL,
    documents INTEGER NOT NULL,
    PRIMARY KEY (space, day)
) STRICT, WITHOUT ROWID;

INSERT INTO doc_day (space, day, documents)
SELECT p.space, substr(d.updated_at, 1, 10), count(*)
FROM doc AS d INDEXED BY doc_by_time
JOIN doc_place AS p ON p.id = d.place
GROUP BY p.space, substr(d.updated_at, 1, 10);

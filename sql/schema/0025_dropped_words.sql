-- Documents that were deleted in numbers: no search finds them, and their words leave the full-text indexes bit by bit.
CREATE TABLE doc_dropped (
    id INTEGER PRIMARY KEY,
    space TEXT NOT NULL,
    text TEXT NOT NULL,
    grams TEXT NOT NULL,
    place INTEGER NOT NULL
) STRICT;

CREATE VIEW doc_dropped_content AS
SELECT id, text, grams, 'quipuplace' || place AS place FROM doc_dropped;

CREATE VIEW doc_dropped_part_content AS
SELECT id, text FROM doc_dropped WHERE space IN ('scopes:guidelines', 'scopes:knowledge', 'scopes:tools');

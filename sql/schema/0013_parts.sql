-- Trigrams of the documents of spaces whose contract has a search for parts of words. Without positions (detail) and
-- lengths (columnsize) they take as much room as the text; who searches compares the texts that hold all trigrams.
CREATE VIEW doc_part_content AS
SELECT id, text FROM doc WHERE space IN ('scopes:guidelines', 'scopes:knowledge', 'scopes:tools');

CREATE VIRTUAL TABLE doc_part USING fts5 (
    text,
    content = 'doc_part_content',
    content_rowid = 'id',
    tokenize = 'trigram',
    detail = 'none',
    columnsize = 0
);

INSERT INTO doc_part (doc_part) VALUES ('rebuild');

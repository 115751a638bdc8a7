-- Blocks hold the columns of many vectors, so that a start reads few rows: of a store that is searched exactly the vectors
-- too. They lie behind the sketches, so that reading those alone does not read them. The server fills blocks as it runs.
DROP TABLE doc_sketch;

CREATE TABLE doc_block (
    last INTEGER PRIMARY KEY,
    model INTEGER NOT NULL REFERENCES doc_model (id),
    ids BLOB NOT NULL,
    docs BLOB NOT NULL,
    places BLOB NOT NULL,
    scales BLOB NOT NULL,
    sketches BLOB NOT NULL,
    vectors BLOB NOT NULL
) STRICT;

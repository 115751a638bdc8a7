-- Beside the tables of sql/schema, which kernel/engines/postgres/tables.py translates before this file runs.
-- SQLite orders the rows of this table by their rowid.
ALTER TABLE quipu_data.scopes_predefined_tag
ADD COLUMN position bigint NOT NULL DEFAULT quipu.next_row('scopes_predefined_tag', 'position');

-- An index of SQLite ends with the rowid.
DROP INDEX quipu_data.doc_by_place;

CREATE INDEX doc_by_place ON quipu_data.doc (tenant, place, id);

-- The words of the documents, by the tokenizer of SQLite's index, with their numbers; `:` and a number is a partition.
CREATE TABLE quipu_data.doc_words (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    doc bigint NOT NULL,
    size bigint NOT NULL,
    stems text [] COLLATE "C" NOT NULL,
    counts smallint [] NOT NULL,
    PRIMARY KEY (tenant, doc)
);

CREATE INDEX doc_words_by_stem ON quipu_data.doc_words USING gin (tenant, stems);

-- Trigrams of the documents whose contract has a search for parts of words.
CREATE TABLE quipu_data.doc_trigrams (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    doc bigint NOT NULL,
    trigrams text [] COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, doc)
);

CREATE INDEX doc_trigrams_by_trigram ON quipu_data.doc_trigrams USING gin (tenant, trigrams);

-- A mark of each transaction that has changed something. The number of a transaction does not tell it after a crash: of
-- one that was lost another has it.
CREATE TABLE quipu_data.commit_mark (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    mark bigint NOT NULL,
    at timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, mark)
);

CREATE INDEX commit_mark_by_time ON quipu_data.commit_mark (tenant, at);

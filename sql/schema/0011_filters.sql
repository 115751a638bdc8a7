-- Whose a document is and of when, in the order in which they come: for filters that leave few of many.
CREATE INDEX doc_by_actor ON doc (actor, updated_at, place);

CREATE INDEX doc_by_time ON doc (updated_at, place);

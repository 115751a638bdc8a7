-- The answers to writes that had an idempotency key, for a day, with the first memories that they touched: a retry gets
-- its answer, and writes nothing.
CREATE TABLE audit_answer (
    caller TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    at TEXT NOT NULL,
    targets TEXT NOT NULL,
    answer BLOB NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT;

CREATE INDEX audit_answer_by_time ON audit_answer (at);

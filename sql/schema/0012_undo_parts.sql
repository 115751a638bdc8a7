-- What a call changed, in parts of bounded size: a call may change more than one value can hold. The parts of a call
-- that commits in several transactions are there before its row in `undo`.
CREATE TABLE undo_part (
    call TEXT NOT NULL,
    part INTEGER NOT NULL,
    targets TEXT NOT NULL,
    changes BLOB NOT NULL,
    PRIMARY KEY (call, part)
) STRICT;

INSERT INTO undo_part (call, part, targets, changes)
SELECT audit, 0, targets, changes FROM undo;

CREATE TABLE undo_call (
    audit INTEGER PRIMARY KEY REFERENCES audit (id),
    at TEXT NOT NULL,
    call TEXT NOT NULL
) STRICT;

INSERT INTO undo_call (audit, at, call) SELECT audit, at, audit FROM undo;

DROP TABLE undo;

ALTER TABLE undo_call RENAME TO undo;

CREATE INDEX undo_by_time ON undo (at);

CREATE INDEX undo_by_call ON undo (call);

-- What an entry had until a time, when its category or priority was changed. Of changes before this table nothing is kept.
CREATE TABLE scopes_entry_was (
    seq INTEGER PRIMARY KEY,
    entry_id TEXT NOT NULL REFERENCES scopes_entry (id),
    until TEXT NOT NULL,
    category TEXT,
    priority INTEGER
) STRICT;

CREATE INDEX scopes_entry_was_by_entry ON scopes_entry_was (entry_id, until);
CREATE INDEX scopes_entry_was_by_time ON scopes_entry_was (until, entry_id);

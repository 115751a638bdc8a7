-- As sql/schema/0023: what an entry had until a time, when its category or priority was changed.
CREATE TABLE quipu_data.scopes_entry_was (
    tenant integer NOT NULL DEFAULT quipu.tenant(),
    seq bigint NOT NULL DEFAULT quipu.next_row('scopes_entry_was', 'seq'),
    entry_id text COLLATE "C" NOT NULL,
    until text COLLATE "C" NOT NULL,
    category text COLLATE "C",
    priority bigint,
    PRIMARY KEY (tenant, seq)
);

CREATE INDEX scopes_entry_was_by_entry ON quipu_data.scopes_entry_was (tenant, entry_id, until);

CREATE INDEX scopes_entry_was_by_time ON quipu_data.scopes_entry_was (tenant, until, entry_id);

INSERT INTO quipu.reference (source, source_column, target, target_column)
VALUES ('scopes_entry_was', 'entry_id', 'scopes_entry', 'id');

SELECT quipu.fill('scopes_entry_was');

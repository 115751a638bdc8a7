-- late is 1 for an entry that is older than its oldest version, as an import without old versions leaves it: at times
-- between the two it is not visible. Only these need to be looked at to count what was visible at a time.
ALTER TABLE scopes_entry ADD COLUMN late INTEGER NOT NULL DEFAULT 0;

UPDATE scopes_entry SET late = 1
WHERE created_at < (SELECT min(v.created_at) FROM scopes_version AS v WHERE v.entry_id = scopes_entry.id);

CREATE INDEX scopes_entry_late ON scopes_entry (kind, scope) WHERE late = 1;

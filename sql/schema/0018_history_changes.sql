-- What each change took the place of, by time: a recall of an earlier time looks here for what has changed since.
-- Creations, most of a history, are not in it.
CREATE INDEX history_by_change ON history (at, space, key) WHERE before IS NOT NULL;

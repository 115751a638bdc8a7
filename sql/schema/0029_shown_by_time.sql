-- Rows are deleted after a year.
CREATE INDEX audit_shown_by_time ON audit_shown (at);

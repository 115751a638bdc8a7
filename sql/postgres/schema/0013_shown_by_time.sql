-- As sql/schema/0029.
CREATE INDEX audit_shown_by_time ON quipu_data.audit_shown (tenant, at);

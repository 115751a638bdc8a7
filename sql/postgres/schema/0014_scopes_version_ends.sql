-- As sql/schema/0030.
CREATE INDEX scopes_version_ends ON quipu_data.scopes_version (tenant, valid_until) WHERE valid_until IS NOT NULL;

-- Few versions have an end: with this, those that are past it are counted without a look at the others.
CREATE INDEX scopes_version_ends ON scopes_version (valid_until) WHERE valid_until IS NOT NULL;

"""Several PostgreSQL databases: the placement of tenants and their moves."""

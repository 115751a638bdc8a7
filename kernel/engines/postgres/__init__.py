"""PostgreSQL behind the store: one database for many processes and tenants. Imported only if it is configured."""

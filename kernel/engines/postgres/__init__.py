"""PostgreSQL behind the store: one database for many processes and tenants. Imported only where it is configured."""

"""Database engines behind the store: SQLite, PostgreSQL, migrations, other programs' SQLite files."""

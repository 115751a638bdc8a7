"""What only SQLite does: connections, changesets, checkpoints, the cost limit of a query."""

"""The SQLite engine: connections, changesets, checkpoints, the cost limit of a call."""

"""The dialects: each a set of tools with its own request types, error format and tables."""

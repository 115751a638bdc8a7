"""The dialects: each a set of tools with its own words and tables."""

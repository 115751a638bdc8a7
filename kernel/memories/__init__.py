"""Generic over every kind of memory: curation, briefing, imported records, past states."""

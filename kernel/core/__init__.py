"""Imported by everything: errors, ids, text, limits, configuration, the data directory, ordinary files."""

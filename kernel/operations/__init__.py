"""Consistency checks, compaction and undo."""

"""Patterns of prompt injection and of secrets."""

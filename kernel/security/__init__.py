"""Permissions, API keys, OAuth, logins, rate limits."""

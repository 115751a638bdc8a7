"""Permissions, API keys, OAuth, prompt-injection rules, rate limits."""

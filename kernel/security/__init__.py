"""Permissions, API keys, OAuth, prompt-injection rules, rules for secrets, rate limits."""

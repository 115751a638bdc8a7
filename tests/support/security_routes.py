"""Calls, values and checks that several tests of routes share."""

METADATA = "/.well-known/oauth-protected-resource"

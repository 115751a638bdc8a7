"""The `quipu` command line."""

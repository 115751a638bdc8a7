"""Several processes that serve one store: a parent that forks them, and what they share."""

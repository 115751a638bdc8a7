"""How many responses had which HTTP status, in this process; only the event loop counts."""

from collections import Counter

STATUSES: Counter[int] = Counter()

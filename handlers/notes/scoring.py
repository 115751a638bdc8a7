"""Scores in [0, 1] that are comparable between queries, search types and over time."""

from collections.abc import Sequence

from kernel.search.index import Scored


def reaching(found: Sequence[Scored], floor: float) -> list[tuple[float, Scored]]:
    """Return the hits of at least this strength, best first, with their scores.

    A score is the strength, or that of a hit further down if it is larger: the order is that of all evidence.
    """
    best, scored = 0.0, list[tuple[float, Scored]]()
    for one in reversed([one for one in found if one.strength >= floor]):
        best = max(best, one.strength)
        scored.append((best, one))
    return scored[::-1]

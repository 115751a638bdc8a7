"""How well a memory answers a query, in [0, 1]: comparable between queries, between search types and over time."""

from typing import Literal

# Below this, memories that have nothing to do with a query are as near to it as those that have.
FLOOR = 0.1
# A document that the engine found holds a word, even if it takes another form of it for the same.
_LEAST = 0.1


def by_words(bm25: float | None, coverage: float) -> float:
    """Exact terms: what part of the words is there, and half of that by how telling they are.

    BM25 alone would say 0 in a small store, where no word is rare.
    """
    if bm25 is None:
        return 0.0
    rank = max(0.0, bm25)
    return max(coverage, _LEAST) * (0.5 + 0.5 * rank / (1.0 + rank))


def by_meaning(similarity: float | None) -> float:
    """The cosine of query and memory, nothing below the floor."""
    return min(1.0, similarity) if similarity is not None and similarity >= FLOOR else 0.0


def score(kind: Literal["search", "vsearch", "query"], words: float, meaning: float) -> float:
    """The score of a search type; `query` counts both signals as independent reasons to believe in a memory."""
    if kind == "search":
        return words
    return meaning if kind == "vsearch" else 1.0 - (1.0 - words) * (1.0 - meaning)

"""Scores in [0, 1] that are comparable between queries, search types and over time."""

from typing import Literal

# Below this cosine, unrelated memories are as frequent as related ones.
MIN_SIMILARITY = 0.1
# A document that FTS5 found contains a word, even if only in another form, where the coverage is 0.
_MIN_COVERAGE = 0.1


def word_score(bm25: float | None, coverage: float) -> float:
    """The share of query words in the text, half of it weighted by BM25.

    BM25 alone is 0 in a small store, where no word is rare.
    """
    if bm25 is None:
        return 0.0
    rank = max(0.0, bm25)
    return max(coverage, _MIN_COVERAGE) * (0.5 + 0.5 * rank / (1.0 + rank))


def meaning_score(similarity: float | None) -> float:
    """The cosine of query and memory, 0 below MIN_SIMILARITY."""
    return min(1.0, similarity) if similarity is not None and similarity >= MIN_SIMILARITY else 0.0


def score(kind: Literal["search", "vsearch", "query"], words: float, meaning: float) -> float:
    """The score of a search type; `query` combines both signals as independent evidence (noisy or)."""
    if kind == "search":
        return words
    return meaning if kind == "vsearch" else 1.0 - (1.0 - words) * (1.0 - meaning)

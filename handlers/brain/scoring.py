"""The score of hybrid_search: four signals in [0, 1], each times its weight (seed 003, Vector Search Tools)."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

IMPORTANCE_SCALE = 5
NEUTRAL_IMPORTANCE = 3
CONFIG_PREFIX = "retrieval."
_RELEVANCE_EXPONENT = 2


class Weights(Struct):
    """What each signal counts, from 0 to 1."""

    vector: float = 0.4
    fts: float = 0.3
    recency: float = 0.2
    importance: float = 0.1


class Signals(Struct):
    """What each signal adds to a score: its value in [0, 1] times its weight."""

    vector: float
    fts: float
    recency: float
    importance: float


class Evidence(NamedTuple):
    """What is known of one candidate: the cosine to the query and the BM25 of its words, None where a search did not
    find it; how present it is, in [0, 1]; its importance from 1 to 5, None where it has none.
    """

    similarity: float | None
    text_rank: float | None
    decay: float
    importance: float | None


def signals(candidates: Sequence[Evidence], weights: Weights) -> list[Signals]:
    """The signals of each candidate of one query.

    Cosine and BM25 have no scale in common: BM25 has no upper end, and what cosine a good match has depends on the
    texts. So both are taken as the share of the best candidate's, and squared, which keeps the order of each but lets a
    good match stand out from those that only share its subject.
    """
    nearest = max((candidate.similarity or 0.0 for candidate in candidates), default=0.0)
    wordiest = max((candidate.text_rank or 0.0 for candidate in candidates), default=0.0)
    return [
        Signals(
            weights.vector * _share(candidate.similarity, nearest),
            weights.fts * _share(candidate.text_rank, wordiest),
            weights.recency * _clamped(candidate.decay),
            weights.importance * importance(candidate.importance),
        )
        for candidate in candidates
    ]


def total_score(found: Signals) -> float:
    """The score: the sum of the signals, at most the sum of the weights."""
    return found.vector + found.fts + found.recency + found.importance


def rounded(found: Signals) -> Signals:
    """The signals to four decimals, as they are told."""
    return Signals(round(found.vector, 4), round(found.fts, 4), round(found.recency, 4), round(found.importance, 4))


def importance(value: float | None) -> float:
    """Importance in [0, 1]; what has none counts as of middling importance."""
    return _clamped((NEUTRAL_IMPORTANCE if value is None else value) / IMPORTANCE_SCALE)


def resolve_weights(given: Mapping[str, float | None], configured: Mapping[str, str]) -> Weights:
    """The weights of a call: each as given, else as configured, else its default. 0 is a weight like any other.

    `configured` are the values of `retrieval.vector_weight` and its kin by key; what is no number from 0 to 1 is as
    good as not there.
    """
    found = Weights()
    for name in found.__struct_fields__:
        asked = given.get(name)
        value = _weight(configured.get(f"{CONFIG_PREFIX}{name}_weight")) if asked is None else asked
        if value is not None:
            setattr(found, name, value)
    return found


def _weight(text: str | None) -> float | None:
    try:
        value = float(text.strip().strip('"')) if text else math.nan
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _share(value: float | None, best: float) -> float:
    return _clamped(value / best) ** _RELEVANCE_EXPONENT if value is not None and best > 0 else 0.0


def _clamped(value: float) -> float:
    return max(0.0, min(1.0, value))

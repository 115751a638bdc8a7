"""The score of hybrid_search: four signals in [0, 1], each times its weight (seed 003, Vector Search Tools).

Every read of a memory counts, and raises its decay score."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from handlers.brain.base import HALF_LIFE_DAYS
from kernel.calls.settings import setting
from kernel.core.times import stored_time
from kernel.search import index
from kernel.search.index import Parts
from kernel.store.transaction import Tx

IMPORTANCE_SCALE = 5
NEUTRAL_IMPORTANCE = 3
CONFIG_PREFIX = "retrieval."
_RELEVANCE_EXPONENT = 2  # measured: the row `behaviour: relevance` of hybrid_search in README.md


class Weights(Struct):
    vector: float = 0.4
    fts: float = 0.3
    recency: float = 0.2
    importance: float = 0.1


CONFIG_KEYS = tuple(f"{CONFIG_PREFIX}{name}_weight" for name in Weights.__struct_fields__)


class Signals(Struct):
    """The contribution of each signal to a score: its value in [0, 1] times its weight."""

    vector: float
    fts: float
    recency: float
    importance: float


class Evidence(NamedTuple):
    """The raw signals of one candidate.

    `relevance` in [0, 1] is the fused evidence, 1 for the best candidate, and `parts` the share of each signal in it;
    `decay` is in [0, 1]; `importance` is 1 to 5, or None.
    """

    relevance: float
    parts: Parts
    decay: float
    importance: float | None


ACCESS_GAIN = 0.1  # added to a decay score by an access
_SECONDS_PER_DAY = 86_400


class ScoreInputs(NamedTuple):
    """The columns of a row that its score needs: its decay score, since when it decays, and its importance."""

    id: str
    decay_score: float
    since: str
    importance: float | None


def relevance_weights(weights: Weights) -> index.Weights:
    """Return the weights of the evidence: the usual weights for the default weights."""
    usual, default, weight_sum = index.Weights(), Weights(), weights.vector + weights.fts
    if not weight_sum:
        return usual
    if not weights.vector or not weights.fts:
        return index.Weights(weights.fts, weights.vector, 0, 0)
    return usual._replace(
        words=usual.words * weights.fts / weight_sum * (default.vector + default.fts) / default.fts,
        meaning=usual.meaning * weights.vector / weight_sum * (default.vector + default.fts) / default.vector,
    )


def signals(evidence: Evidence, weights: Weights) -> Signals:
    """Return the signals of a candidate.

    Relevance is squared, which keeps the order but separates a good match from candidates that only share its subject.
    It is divided between words and meaning as they contributed, each at most its weight.
    """
    by_words, by_meaning = evidence.parts.words, evidence.parts.meaning + evidence.parts.late
    share = by_words / (by_words + by_meaning) if by_words + by_meaning > 0 else weights.fts
    relevance = (weights.vector + weights.fts) * _clamped(evidence.relevance) ** _RELEVANCE_EXPONENT
    fts = min(weights.fts, max(relevance - weights.vector, relevance * _clamped(share)))
    return Signals(
        relevance - fts,
        fts,
        weights.recency * _clamped(evidence.decay),
        weights.importance * importance(evidence.importance),
    )


def total_score(score: Signals) -> float:
    return score.vector + score.fts + score.recency + score.importance


def rounded(score: Signals) -> Signals:
    return Signals(round(score.vector, 4), round(score.fts, 4), round(score.recency, 4), round(score.importance, 4))


def importance(value: float | None) -> float:
    return _clamped((NEUTRAL_IMPORTANCE if value is None else value) / IMPORTANCE_SCALE)


def resolve_weights(own: Mapping[str, float | None], config: Mapping[str, str]) -> Weights:
    """Return the weights of a call: each as given, else as configured, else its default; a given 0 counts.

    `config` maps keys such as `retrieval.vector_weight` to their values; a value that is not a number from 0 to 1
    counts as not configured.
    """
    weights = Weights()
    for name in weights.__struct_fields__:
        weight = own.get(name)
        value = parse_weight(config.get(f"{CONFIG_PREFIX}{name}_weight")) if weight is None else weight
        if value is not None:
            setattr(weights, name, value)
    return weights


def parse_weight(text: str | None) -> float | None:
    """Return a configured weight; None if the text is not a number from 0 to 1."""
    try:
        value = float(text.strip().strip('"')) if text else math.nan
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _clamped(value: float) -> float:
    return max(0.0, min(1.0, value))


def record_access(tx: Tx, db: str, ids: Sequence[str]) -> None:
    """Counts one access of each memory, in one statement that does not touch the index."""
    if not ids:
        return
    half_life = half_life_days(tx)
    scores = tx.all("brain.hybrid_search.memory_signals", ScoreInputs, db=db, ids=ids)
    rows = [(row.id, min(1.0, decayed(row.decay_score, row.since, tx.now, half_life) + ACCESS_GAIN)) for row in scores]
    tx.run("brain.scoring.record_access", db=db, rows=rows, now=tx.now)


def half_life_days(tx: Tx) -> float:
    return setting(tx, HALF_LIFE_DAYS)


def decayed(decay_score: float, since: str, now: str, half_life: float) -> float:
    """Return a decay score in [0, 1] after halving with every half-life since a time."""
    age = (datetime.fromisoformat(now) - stored_time(since)).total_seconds() / _SECONDS_PER_DAY
    return max(0.0, min(1.0, decay_score)) * 0.5 ** (max(0.0, age) / half_life)

"""Ranking metrics: nDCG@10, recall at 5 and 10, MRR, and bootstrap intervals of their means."""

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CUT = 10
_SAMPLES = 2000
_TAIL = 2.5


class Scores(NamedTuple):
    """Metrics of one ranking, each in [0, 1]; `mrr` is the reciprocal rank of the first hit among ten."""

    ndcg: float
    recall5: float
    recall10: float
    mrr: float


class Interval(NamedTuple):
    """A mean with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


def judge(ranked: Sequence[str], relevant: Collection[str]) -> Scores:
    """The metrics of one ranking of distinct ids."""
    gains = [key in relevant for key in ranked[:CUT]]
    best = sum(1 / math.log2(rank + 2) for rank in range(min(CUT, len(relevant))))
    ndcg = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains)) / best
    first = next((1 / (rank + 1) for rank, gain in enumerate(gains) if gain), 0.0)
    return Scores(ndcg, sum(gains[:5]) / len(relevant), sum(gains) / len(relevant), first)


def interval(values: Sequence[float]) -> Interval:
    """The mean of `values` and its 95 % bootstrap interval; deterministic."""
    means = _samples(len(values)) @ np.asarray(values, np.float64)
    low, high = np.percentile(means, [_TAIL, 100 - _TAIL])
    return Interval(float(np.mean(values)), float(low), float(high))


def macro(values: Sequence[float], groups: Sequence[str]) -> float:
    """The mean over the groups of the mean of each."""
    held: dict[str, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        held.setdefault(group, []).append(value)
    return sum(sum(one) / len(one) for one in held.values()) / len(held)


def _samples(size: int) -> NDArray[np.float64]:
    """The resampling weights of `size` values, a row for each sample."""
    drawn = np.random.default_rng(0).integers(0, size, (_SAMPLES, size))
    return np.stack([np.bincount(row, minlength=size) for row in drawn]) / size

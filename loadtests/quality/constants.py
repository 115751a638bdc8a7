"""Chooses the constants of the ranking on all collections but one, and judges them by the questions of that one.

Words count as shipped: only the ratios of the signals matter. Candidates are found once for every choice.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernel.search import index
from kernel.search.fusion import Candidates
from kernel.search.rerank import Settings
from kernel.store.transaction import Tx
from loadtests.lib.servers import table
from loadtests.quality import fts5_baseline, in_process
from loadtests.quality.dataset import Collection, Query
from loadtests.quality.metrics import CUT, interval, judge

_WANTED_GAIN = 0.02  # over plain FTS5, in nDCG@10
_MEANING, _LATE, _NEIGHBOURS = (0.2, 0.3, 0.4), (0.3, 0.4, 0.5), (0.25, 0.35, 0.45)
_POOLS = (32, 48)
_COHERENCE = ((0.01, 0.03, 0.25, 0.35), Settings().coherence, (0.04, 0.08, 0.15, 0.2))
Values = NDArray[np.float64]


class Choice(NamedTuple):
    """The constants of one ranking."""

    weights: index.Weights = index.Weights()
    settings: Settings = Settings()

    def __str__(self) -> str:
        low, *_, high = self.settings.coherence
        weights = "/".join(f"{one:g}" for one in self.weights)
        return f"{weights}, {self.settings.pool}, {low:g}-{high:g}"


def choices() -> list[Choice]:
    """Every choice that is compared, the shipped one first."""
    grid = itertools.product(_MEANING, _LATE, _NEIGHBOURS, _POOLS, _COHERENCE)
    found = [
        Choice(index.Weights(meaning=meaning, late=late, neighbours=neighbours), Settings(pool, coherence))
        for meaning, late, neighbours, pool, coherence in grid
    ]
    return [*dict.fromkeys([Choice(), *found])]


def leave_one_out(collections: Sequence[Collection], among: Sequence[Choice]) -> None:
    """Choose, judge and print; the first of `among` is what ships."""
    found = {one.name: _judged(one, among) for one in collections}
    plain = {one.name: _plain(one) for one in collections}
    rows: list[tuple[Any, ...]] = []
    short: list[str] = []
    for name, scores in found.items():
        chosen = _best([one for other, one in found.items() if other != name])
        gain = interval((scores[chosen] - plain[name]).tolist())
        figures = (plain[name].mean(), scores[0].mean(), scores[chosen].mean())
        span = f"{gain.low:+.3f} to {gain.high:+.3f}"
        rows.append((name, str(among[chosen]), *(f"{one:.3f}" for one in figures), f"{gain.mean:+.3f}", span))
        if gain.mean < _WANTED_GAIN:
            short.append(f"{name} {gain.mean:+.3f}")
    header = ("left out", "chosen on the others", "plain FTS5", "shipped", "chosen", "-FTS5", "95 %")
    table("weights (words/meaning/late/neighbours), pool, coherence", header, rows)
    print(f"less than plain FTS5 + {_WANTED_GAIN}: {'; '.join(short) or 'none'}")
    best = _best([*found.values()])
    gains = {name: scores[best].mean() - scores[0].mean() for name, scores in found.items()}
    told = ", ".join(f"{name} {gain:+.3f}" for name, gain in gains.items())
    print(f"shipped: {among[0]}; chosen on all: {among[best]}, which changes {told}")


def _judged(collection: Collection, among: Sequence[Choice]) -> Values:
    """The nDCG@10 of each choice (a row) and question."""
    with in_process.filled(collection) as (kernel, ids):

        def judged(tx: Tx, query: Query) -> list[float]:
            found = in_process.candidates(tx, query.text, query.scope)
            return [judge(_ranked(tx, query.text, found, choice, ids), query.relevant).ndcg for choice in among]

        asked = (kernel.store.read_sync(partial(judged, query=query)) for query in collection.queries)
        return np.array([*asked]).T


def _ranked(tx: Tx, text: str, found: Candidates, choice: Choice, ids: Mapping[int, str]) -> list[str]:
    fused = index.rerank(tx, text, found, choice.weights, settings=choice.settings).fused
    return [ids[doc] for doc in fused.found.docs[:CUT].tolist()]


def _plain(collection: Collection) -> Values:
    words = fts5_baseline.Words(collection)
    return np.array([judge(words.find(one.text, one.scope).ids, one.relevant).ndcg for one in collection.queries])


def _best(found: Sequence[Values]) -> int:
    """The choice with the highest mean over the collections, each of which counts the same."""
    return int(np.mean([one.mean(axis=1) for one in found], axis=0).argmax())

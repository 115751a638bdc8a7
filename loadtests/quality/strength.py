"""Fits the strength of a hit, on all collections but one, and judges it by the questions of that one.

Right answers are set against the best hits of questions that have no answer in the place: those of other collections,
and nonsense.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernel.search import index
from kernel.store.transaction import Tx
from loadtests.lib.servers import table
from loadtests.quality import in_process
from loadtests.quality.dataset import Collection
from loadtests.quality.generated_texts import NONSENSE
from loadtests.quality.metrics import CUT

_FOREIGN = 30  # questions of each other collection
_ROUNDS = 60
_PENALTY = 1e-4
# Kinds whose best evidence is no other than that of a question without an answer: they are judged, not fitted to.
_NOT_FITTED = ("preferences", "languages")
Array = NDArray[np.float64]


class Evidence(NamedTuple):
    """Cosine and near share of the first ten hits of each question: `question` numbers them, `right` marks answers."""

    question: Array
    right: Array
    signals: Array
    answered: Array


def leave_one_out(collections: Sequence[Collection]) -> None:
    """Fit, judge and print."""
    found = {one.name: _evidence(one, collections) for one in collections}
    rows: list[tuple[Any, ...]] = []
    for name, evidence in found.items():
        others = _fit([one for other, one in found.items() if other != name and other not in _NOT_FITTED])
        every = _fit([one for other, one in found.items() if other not in _NOT_FITTED])
        rows.append(
            (name, *(f"{auc(*_best(evidence, fit)):.3f}" for fit in (others, every)), *_figures(evidence, others))
        )
    header = ("left out", "AUC", "fitted too", "strong: precision", "recall", "weak: lost", "without an answer")
    table("strength, fitted on the other collections", header, rows)
    bias, *weights = _fit([one for name, one in found.items() if name not in _NOT_FITTED])
    print(f"fitted on all: bias {bias:.2f}, meaning {weights[0]:.2f}, near {weights[1]:.2f}")


def auc(answered: Array, others: Array) -> float:
    """How often an answered question has the stronger best hit; ties count half."""
    less = (answered[:, None] > others).mean() + (answered[:, None] == others).mean() / 2
    return float(less)


def _evidence(collection: Collection, collections: Sequence[Collection]) -> Evidence:
    scopes = [*collection.scopes]
    asked = [(query.text, query.scope, frozenset(query.relevant)) for query in collection.queries]
    foreign = [query.text for one in collections if one is not collection for query in one.queries[:_FOREIGN]]
    strange = [(text, scopes[at % len(scopes)], frozenset[str]()) for at, text in enumerate([*foreign, *NONSENSE])]
    rows: list[tuple[float, ...]] = []
    with in_process.filled(collection) as (kernel, ids):
        for number, (text, scope, relevant) in enumerate([*asked, *strange]):
            for doc, meaning, near in kernel.store.read_sync(lambda tx, text=text, scope=scope: _hits(tx, text, scope)):
                rows.append((number, ids[doc] in relevant, meaning, near, bool(relevant)))
    whole = np.nan_to_num(np.array(rows, np.float64))
    return Evidence(whole[:, 0], whole[:, 1], whole[:, 2:4], whole[:, 4])


def _hits(tx: Tx, text: str, scope: str) -> list[tuple[int, float, float]]:
    best = index.rerank(tx, text, in_process.candidates(tx, text, scope), index.Weights()).fused.found
    columns = best.docs[:CUT].tolist(), best.meaning[:CUT].tolist(), best.near[:CUT].tolist()
    return [*zip(*columns, strict=True)]


def _fit(sources: Sequence[Evidence]) -> Array:
    """Bias and weights of a logistic; the right and the wrong hits of every collection count the same."""
    signals, right, weight = list[Array](), list[Array](), list[Array]()
    for one in sources:
        for kept in (one.right > 0, one.answered == 0):
            signals.append(one.signals[kept])
            right.append(one.right[kept])
            weight.append(np.full(int(kept.sum()), 1 / max(1, kept.sum())))
    y, w = np.concatenate(right), np.concatenate(weight)
    x = np.column_stack([np.ones(len(y)), np.concatenate(signals)])
    fit = np.zeros(x.shape[1])
    for _ in range(_ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(x @ fit, -30, 30)))
        slope = (x * (w * p * (1 - p))[:, None]).T @ x + _PENALTY * np.eye(len(fit))
        fit = fit - np.linalg.solve(slope, x.T @ (w * (p - y)) + _PENALTY * fit)
    return fit  # pyrefly: ignore[bad-return]


def _best(evidence: Evidence, fit: Array) -> tuple[Array, Array]:
    """The odds of the best hit of each answered question, and of each other one."""
    odds = fit[0] + evidence.signals @ fit[1:]
    numbers = evidence.question.astype(np.int64)
    best, answered = np.full(numbers.max() + 1, -np.inf), np.zeros(numbers.max() + 1, np.bool_)
    np.maximum.at(best, numbers, odds)
    answered[numbers] = evidence.answered > 0
    held = np.isfinite(best)
    return best[held & answered], best[held & ~answered]


def _figures(evidence: Evidence, fit: Array) -> tuple[str, ...]:
    answered, others = _best(evidence, fit)
    strong, weak = (float(np.log(level / (1 - level))) for level in (index.least("strong"), index.least("weak")))
    recall, wrong = float((answered >= strong).mean()), float((others >= strong).mean())
    odds = fit[0] + evidence.signals[evidence.right > 0] @ fit[1:]
    precision = recall / max(recall + wrong, 1e-9)
    passed = float((others >= weak).mean())
    return f"{precision:.2f}", f"{recall:.2f}", f"{(odds < weak).mean():.3f}", f"{passed:.2f} pass weak"

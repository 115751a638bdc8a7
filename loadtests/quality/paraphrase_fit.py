"""Fits the network that tells whether two questions ask the same, and judges it on pairs that it was not fitted to.

A file has pairs of texts as JSON lines with `a`, `b` and a `label` of 0 or 1. The first half is fitted to, the second
half judges. `--write` replaces `kernel/search/paraphrase_weights.py`; without it the weights that ship are judged.
`--compare` fits two plainer models to the same half.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kernel.config import MODEL
from kernel.embed.model import Embedder
from kernel.search import equivalence, paraphrase, paraphrase_weights
from loadtests.lib.servers import options, table
from loadtests.quality import question_families

Array = NDArray[np.float64]
Scorer = Callable[[Array], Array]
_HIDDEN = 12
_STEPS = 500
_RATE = 0.02
_DECAY, _LAST_DECAY = 0.003, 0.001  # of the hidden weights, of the direct ones
_FOLDS = 5
_RECALL = 0.61  # of the decision in the folds of the fitted half, by which the limit is chosen
_SAMPLES = 1000
_FILE = Path(paraphrase_weights.__file__)
_MODULE = '''"""The weights of `paraphrase`, written by `python -m loadtests.quality.paraphrase_fit FILE --write`."""

from functools import cache
from typing import Any

LEAST = {least}
"""The log odds from which two questions are said to ask the same."""
# A line for each signal: its mean, its spread, its weight in each hidden unit, and its direct weight. Then the biases,
# and the weights of the hidden units.
_TABLE = """
{rows}
"""


@cache
def network() -> Any:
    """Means and spreads, the hidden weights with their biases, the weights of the units, and the direct ones."""
    import numpy as np

    *signals, biases, units = [np.array(line.split(), np.float64) for line in _TABLE.strip().splitlines()]
    table = np.array(signals)
    return table[:, :2].T, np.vstack([table[:, 2:-1], biases[:-1]]), units, np.append(table[:, -1], biases[-1])
'''


class Pair(msgspec.Struct):
    """Two texts, and whether they are equal."""

    a: str
    b: str
    label: int


class Judged(NamedTuple):
    """Pairs by their signals: whether they are the same, and whether something tells them apart or is no question."""

    signals: Array
    label: Array
    barred: NDArray[np.bool_]

    def beside(self, other: "Judged") -> "Judged":
        """These and others."""
        signals = np.concatenate([self.signals, other.signals])
        return Judged(signals, np.concatenate([self.label, other.label]), np.concatenate([self.barred, other.barred]))

    def part(self, kept: Any) -> "Judged":
        return Judged(self.signals[kept], self.label[kept], self.barred[kept])


class Network(NamedTuple):
    """As `paraphrase_weights` has it."""

    bounds: Array
    hidden: Array
    units: Array
    direct: Array

    def odds(self, signals: Array) -> Array:
        scaled = np.clip((signals - self.bounds[0]) / self.bounds[1], -4, 4)
        inner = np.tanh(scaled @ self.hidden[:-1] + self.hidden[-1])
        return inner @ self.units + scaled @ self.direct[:-1] + self.direct[-1]


def read(file: Path) -> Judged:
    """The pairs of a file."""
    return judged_by_signals([msgspec.json.decode(line, type=Pair) for line in file.read_bytes().splitlines()])


def generated(families: str) -> Judged:
    """Pairs of generated questions: two wordings, and as many that ask something else or about something else."""
    pairs: list[Pair] = []
    for family in question_families.read(families):
        for value, after in zip(family.values, family.values[1:] + family.values[:1], strict=True):
            same = [wording.format(v=value) for wording in family.same]
            others = [wording.format(v=value) for wording in family.others]
            moved = [wording.format(v=after) for wording in family.same]
            pairs += [Pair(a, b, 1) for at, a in enumerate(same) for b in same[:at]]
            pairs += [Pair(a, b, 0) for a, b in zip(same, [*others, others[0]], strict=True)]
            pairs += [Pair(a, b, 0) for a, b in zip(same, [*moved[2:], *moved[:2]], strict=True)]
            pairs += [Pair(a, b, 0) for a, b in zip(same, moved, strict=True)]
    return judged_by_signals(pairs)


def judged_by_signals(pairs: Sequence[Pair]) -> Judged:
    """The signals of pairs; without tokens they are 0."""
    embedder = Embedder(MODEL)
    rows: list[list[float]] = []
    barred: list[bool] = []
    for pair in pairs:
        one, other = (
            paraphrase.question(embedder, text, embedded.tokens)
            for text, embedded in zip((pair.a, pair.b), embedder.embed([pair.a, pair.b]), strict=True)
        )
        apart = equivalence.differences(pair.a, pair.b)
        known = bool(len(one.weights) and len(other.weights))
        rows.append(paraphrase.signals(one, other, apart) if known else [0.0] * len(paraphrase.SIGNALS))
        asked = paraphrase.is_question(pair.a) and paraphrase.is_question(pair.b)
        barred.append(any(apart) or not known or not asked)
    return Judged(np.array(rows, np.float64), np.array([pair.label for pair in pairs], np.float64), np.array(barred))


def halves(judged: Judged) -> tuple[Judged, Judged]:
    """What is fitted to, and what judges."""
    middle = len(judged.label) // 2
    return judged.part(slice(0, middle)), judged.part(slice(middle, None))


def train(judged: Judged) -> Network:
    """Full-batch Adam from fixed first weights, the rate falling to zero."""
    signals, label = judged.signals, judged.label
    bounds = np.array([signals.mean(axis=0), signals.std(axis=0) + 1e-9])
    x = np.clip((signals - bounds[0]) / bounds[1], -4, 4)
    chance, width = np.random.default_rng(0), x.shape[1]
    weights = [
        np.vstack([chance.normal(0, 0.3, (width, _HIDDEN)), np.zeros(_HIDDEN)]),
        chance.normal(0, 0.3, _HIDDEN),
        np.zeros(width + 1),
    ]
    first, second = ([np.zeros_like(one) for one in weights] for _ in range(2))
    for step in range(1, _STEPS + 1):
        slopes = _slopes(weights, x, label)
        rate = _RATE * (1 - step / _STEPS)
        for at, slope in enumerate(slopes):
            first[at] = 0.9 * first[at] + 0.1 * slope
            second[at] = 0.99 * second[at] + 0.01 * slope**2
            weights[at] = weights[at] - rate * (first[at] / (1 - 0.9**step)) / (
                np.sqrt(second[at] / (1 - 0.99**step)) + 1e-8
            )
    return Network(bounds, *weights)


def _slopes(weights: Sequence[Array], x: Array, label: Array) -> list[Array]:
    hidden, units, direct = weights
    inner = np.tanh(x @ hidden[:-1] + hidden[-1])
    wrong = (_logistic(inner @ units + x @ direct[:-1] + direct[-1]) - label) / len(label)
    back = np.outer(wrong, units) * (1 - inner**2)
    decay, last = hidden * _DECAY, direct * _LAST_DECAY
    decay[-1] = last[-1] = 0
    return [
        np.vstack([x.T @ back, back.sum(axis=0)]) + decay,
        inner.T @ wrong + _DECAY * units,
        np.append(x.T @ wrong, wrong.sum()) + last,
    ]


def logistic(judged: Judged, penalty: float = 1.0) -> Scorer:
    """The plainer model: a logistic over the same signals."""
    mean, spread = judged.signals.mean(axis=0), judged.signals.std(axis=0) + 1e-9

    def scaled(signals: Array) -> Array:
        return np.column_stack([np.ones(len(signals)), (signals - mean) / spread])

    x, fit = scaled(judged.signals), np.zeros(judged.signals.shape[1] + 1)
    for _ in range(30):
        p = _logistic(x @ fit)
        slope = (x * (p * (1 - p))[:, None]).T @ x + penalty * np.eye(len(fit))
        fit = fit - np.linalg.solve(slope, x.T @ (p - judged.label) + penalty * fit)
    return lambda signals: scaled(signals) @ fit


def _logistic(odds: Array) -> Array:
    return 1 / (1 + np.exp(-np.clip(odds, -30, 30)))


def in_folds(judged: Judged, fit: Callable[[Judged], Scorer]) -> Array:
    """The odds of every pair by a model fitted to the other folds; pairs that stand together stay together."""
    fold = np.arange(len(judged.label)) // 2 % _FOLDS
    odds = np.zeros(len(judged.label))
    for left_out in range(_FOLDS):
        odds[fold == left_out] = fit(judged.part(fold != left_out))(judged.signals[fold == left_out])
    return odds


def measured(said: NDArray[np.bool_], label: Array) -> tuple[float, float, float]:
    """Precision, recall and F1."""
    right = float(label[said].sum())
    precision, recall = right / max(1, said.sum()), right / max(1.0, label.sum())
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


def least_for(odds: Array, judged: Judged) -> float:
    """The odds from which the decision has the wanted recall."""
    right = np.sort(odds[(judged.label == 1) & ~judged.barred])[::-1]
    return float(right[min(len(right), round(_RECALL * judged.label.sum())) - 1])


def best_f1(odds: Array, label: Array) -> float:
    """The odds with the best F1."""
    order = np.argsort(-odds, kind="stable")
    right = np.cumsum(label[order])
    return float(odds[order][np.argmax(2 * right / (np.arange(1, len(order) + 1) + label.sum()))])


def judge(name: str, scorer: Scorer, limits: tuple[float, float], judged: Judged) -> tuple[str, ...]:
    """A row: F1 by the odds alone, then precision, recall and F1 of the decision, with intervals over the pairs."""
    odds = scorer(judged.signals)
    every, said = odds >= limits[0], (odds >= limits[1]) & ~judged.barred
    chance = np.random.default_rng(1)
    drawn = [chance.integers(0, len(odds), len(odds)) for _ in range(_SAMPLES)]
    samples = np.array(
        [(measured(every[at], judged.label[at])[2], *measured(said[at], judged.label[at])) for at in drawn]
    )
    low, high = np.percentile(samples, (2.5, 97.5), axis=0)
    values = (measured(every, judged.label)[2], *measured(said, judged.label))
    return (name, *(f"{value:.3f} [{a:.3f} {b:.3f}]" for value, a, b in zip(values, low, high, strict=True)))


def write(network: Network, least: float) -> None:
    """Replace the module of the weights."""
    columns = [*network.bounds, *network.hidden[:-1].T, network.direct[:-1]]
    rows = [*np.column_stack(columns), np.append(network.hidden[-1], network.direct[-1]), network.units]
    lines = (" ".join(f"{value:.3g}" for value in row) for row in rows)
    _FILE.write_text(_MODULE.format(least=round(least, 3), rows="\n".join(lines)), "utf-8")


def report(file: Path, *, written: bool = False, compared: bool = False) -> None:
    """Print the decision on the half that is not fitted to, as it ships, or of what is fitted now."""
    fitted, rest = halves(read(file))
    beside = generated(question_families.FITTED)

    def network(judged: Judged) -> Scorer:
        return train(judged.beside(beside)).odds

    models: dict[str, Callable[[Judged], Scorer]] = {}
    if written or compared:
        models["network"] = network
    if compared:
        models |= {"logistic": logistic, "logistic of one signal": _narrow}
    rows: list[tuple[str, ...]] = []
    if not written:
        limits = best_f1(paraphrase.odds(fitted.signals), fitted.label), paraphrase_weights.LEAST
        rows.append(judge("as shipped", paraphrase.odds, limits, rest))
    for name, fit in models.items():
        folds = in_folds(fitted, fit)
        limits = best_f1(folds, fitted.label), least_for(folds, fitted)
        rows.append(judge(name, fit(fitted), limits, rest))
        if written and name == "network":
            write(train(fitted.beside(beside)), limits[1])
    title = f"{file.parent.name}: {len(rest.label)} pairs, fitted to {len(fitted.label)} others"
    table(title, ("model", "F1 by the odds", "decision: precision", "recall", "F1"), rows)


def _narrow(judged: Judged) -> Scorer:
    share = paraphrase.SIGNALS.index("shared trigrams")
    scorer = logistic(judged._replace(signals=judged.signals[:, share : share + 1]))
    return lambda signals: scorer(signals[:, share : share + 1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit and judge."""
    chosen = options(
        __doc__,
        arguments,
        pairs={"type": Path, "nargs": 1, "help": "pairs of texts with labels"},
        write={"action": "store_true", "help": "replace the weights that ship"},
        compare={"action": "store_true", "help": "fit plainer models too"},
    )
    report(chosen.pairs[0], written=chosen.write, compared=chosen.compare)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

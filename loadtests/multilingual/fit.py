"""Fits the new rows: the sum of a text's rows shall point where the shipped rows of its English translation do."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loadtests.multilingual.teachers import unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

SCALE = 200.0  # of the shipped rows, int8; the rate below is for rows of about unit length
_RATE = 0.004
_TEMPERATURE = 0.07
_DROPPED = 0.2  # of the tokens of each text, so that no row relies on another
_BATCH = 1024
_SAME = 0.98  # cosine of English texts that are no counterexamples of each other
_HELD_OUT = 200  # pairs of a language


class Example(NamedTuple):
    """Rows of a text and shipped rows of its English translation."""

    language: str
    rows: "Ids"
    english: "Ids"


def fit(table: "Floats", shipped: int, examples: Sequence[Example], rounds: int) -> "Floats":
    """Return the table (rows x 256, divided by SCALE) with its rows from `shipped` on fitted to the examples."""
    random, table = np.random.default_rng(0), table.copy()
    held_out: dict[str, list[Example]] = {}
    learnt: list[Example] = []
    for example in examples:
        kept = held_out.setdefault(example.language, [])
        (kept if len(kept) < _HELD_OUT and len(example.rows) > 1 else learnt).append(example)
    print(f"before: {accuracy(table, held_out)}", flush=True)
    momentum, squares = np.zeros_like(table), np.zeros((len(table), 1), np.float32)
    batches = len(learnt) // _BATCH
    begun, steps = time.process_time(), rounds * batches
    order = random.permutation(len(learnt))
    for step in range(steps):
        if step and step % batches == 0:
            order = random.permutation(len(learnt))
        batch = [learnt[at] for at in order[(step % batches) * _BATCH :][:_BATCH]]
        rows, slope, agreement = _gradient(table, batch, random)
        new = rows >= shipped
        rows, slope = rows[new], slope[new]
        momentum[rows] = 0.8 * momentum[rows] + 0.2 * slope
        squares[rows] = 0.98 * squares[rows] + 0.02 * (slope * slope).mean(axis=1, keepdims=True) + 1e-12
        rate = _RATE * min(1, (step + 1) / 50) * (1 - step / steps)
        # One second moment a row keeps the direction of its gradient.
        table[rows] -= rate * momentum[rows] / np.sqrt(np.maximum(squares[rows], 1e-8))
        if step % 200 == 0:
            print(f"step {step} of {steps}: cosine {agreement:.3f}, {time.process_time() - begun:.0f} s", flush=True)
    print(f"after: {accuracy(table, held_out)}", flush=True)
    return table


def merged(directions: "Floats", used: "NDArray[np.float64]", most: int) -> "NDArray[np.int64]":
    """Return for each row the row that takes its place, so that at most `most` remain: a row joins the more used row
    that is nearest to it, beginning with the nearest pairs. Forms of a word, and words of several languages, share it.
    """
    order = np.argsort(-used, kind="stable")
    ordered = directions[order]
    likeness, parents = np.full(len(order), -1, np.float32), np.arange(len(order))
    for start in range(0, len(order), _BATCH):
        end = min(len(order), start + _BATCH)
        cosines = ordered[start:end] @ ordered[:end].T
        cosines[np.arange(end)[None, :] >= np.arange(start, end)[:, None]] = -2
        parents[start:end], likeness[start:end] = cosines.argmax(axis=1), cosines.max(axis=1)
    joining = np.zeros(len(order), np.bool_)
    joining[np.argsort(-likeness, kind="stable")[: max(0, len(order) - most)]] = True
    roots = np.arange(len(order))
    for at in np.flatnonzero(joining):
        roots[at] = roots[parents[at]]
    places = np.empty(len(order), np.int64)
    places[order] = order[roots]
    return places


def accuracy(table: "Floats", held_out: dict[str, list[Example]]) -> str:
    """Return, for each language, the share of held-out texts that are nearest to their own English text."""
    shares: dict[str, float] = {}
    for language, examples in sorted(held_out.items()):
        own = unit(_sums(table, [example.rows for example in examples])[0])
        english = unit(_sums(table, [example.english for example in examples])[0])
        shares[language] = float(((own @ english.T).argmax(axis=1) == np.arange(len(own))).mean())
    mean = sum(shares.values()) / len(shares)
    return f"mean {mean:.3f}  " + " ".join(f"{language} {share:.2f}" for language, share in shares.items())


def _sums(table: "Floats", texts: Sequence["Ids"]) -> tuple["Floats", "Ids", "NDArray[np.int64]"]:
    """Return the sum of each text's rows, all rows in order, and the position of each text's first row."""
    sizes = np.array([len(text) for text in texts])
    rows, starts = np.concatenate(texts), np.cumsum(sizes) - sizes
    return np.add.reduceat(table[rows], starts, axis=0), rows, starts


def _gradient(table: "Floats", batch: Sequence[Example], random: np.random.Generator) -> tuple["Ids", "Floats", float]:
    """Return the rows that the batch touches, the gradient of each, and the mean cosine of text and translation."""
    thinned = [_thinned(example.rows, random) for example in batch]
    sums, rows, starts = _sums(table, thinned)
    target = unit(_sums(table, [example.english for example in batch])[0])
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-3)
    own = sums / lengths
    likeness = own @ target.T / _TEMPERATURE
    same = target @ target.T > _SAME
    np.fill_diagonal(same, val=False)
    likeness[same] = -1e9
    chances = np.exp(likeness - likeness.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    # The cosine to the translation, and the choice of the translation among those of the batch.
    slope = chances @ target - 2 * target
    slope = (slope - (slope * own).sum(axis=1, keepdims=True) * own) / lengths
    texts = np.repeat(np.arange(len(batch)), np.diff(np.append(starts, len(rows))))
    order = np.argsort(rows, kind="stable")
    distinct, first = np.unique(rows[order], return_index=True)
    return distinct, np.add.reduceat(slope[texts[order]], first, axis=0), float((own * target).sum(axis=1).mean())


def _thinned(rows: "Ids", random: np.random.Generator) -> "Ids":
    kept = random.random(len(rows)) >= _DROPPED
    kept[0] = True
    return rows[kept]

"""Candidates of the signals: one row for each document, in rising order, with NaN for evidence that is missing."""

import math
from typing import Any

import numpy as np

from kernel.search.fusion import candidates, positions


def rows(docs: object, words: object, meaning: object) -> list[tuple[Any, ...]]:
    pairs = zip(np.asarray(docs).tolist(), np.asarray(words).tolist(), np.asarray(meaning).tolist(), strict=True)
    return [(doc, *(None if math.isnan(value) else value for value in evidence)) for doc, *evidence in pairs]


def test_the_evidence_of_both_signals_stands_in_one_row() -> None:
    both = candidates({7: 2.5, 3: 1.0}, {3: 0.5, 9: 0.25})
    assert rows(both.docs, both.words, both.meaning) == [(3, 1.0, 0.5), (7, 2.5, None), (9, None, 0.25)]


def test_a_mask_takes_rows_with_their_evidence() -> None:
    part = candidates({1: 1.0, 2: 2.0}, {}).take(np.array([False, True]))
    assert rows(part.docs, part.words, part.meaning) == [(2, 2.0, None)]


def test_two_sets_are_joined_in_rising_order() -> None:
    whole = candidates({5: 1.0}, {}).joined(candidates({2: 3.0}, {}))
    assert rows(whole.docs, whole.words, whole.meaning) == [(2, 3.0, None), (5, 1.0, None)]


def test_positions_are_those_in_the_rising_ids() -> None:
    docs = np.array([2, 5, 9])
    assert positions(docs, np.array([5, 3, 9, 10])).tolist() == [1, -1, 2, -1]
    assert positions(np.array([], np.int64), np.array([1])).tolist() == [-1]

"""BM25 ranks by frequency, rarity and length; a term in many documents hardly counts."""

import pytest

from kernel.search.bm25 import bm25, pack_tf


def scores(*rows: tuple[list[int], int], total: int = 10, frequencies: list[int] | None = None) -> list[float]:
    terms = max(len(counts) for counts, _ in rows)
    return bm25([pack_tf(counts, length, 10.0) for counts, length in rows], terms, total, frequencies)


def test_no_rows_have_no_scores() -> None:
    assert bm25([], 1, 10, None) == []


def test_the_formula_is_that_of_fts5() -> None:
    # idf = ln(1 + (10 - 1 + .5) / (1 + .5)), tf part = 1 * 2.2 / (1 + 1.2) at the mean length.
    assert scores(([1], 10)) == pytest.approx([1.9924], abs=1e-4)


def test_more_occurrences_and_a_shorter_text_rank_higher() -> None:
    once, twice, short = scores(([1], 10), ([2], 10), ([1], 5))
    assert twice > once
    assert short > once


def test_a_rare_term_ranks_higher_than_a_common_term() -> None:
    rare, common = scores(([1, 0], 10), ([0, 1], 10), frequencies=[1, 5])
    assert rare > common


def test_a_term_in_more_than_a_quarter_of_many_documents_hardly_counts() -> None:
    rare, common = scores(([1, 0], 10), ([0, 1], 10), total=100, frequencies=[10, 40])
    assert 0 < common < rare / 50
    (alone,) = scores(([1], 10), total=100, frequencies=[40])
    assert alone > 50 * common


def test_frequencies_over_255_are_saturated() -> None:
    assert scores(([300], 400)) == scores(([255], 400))

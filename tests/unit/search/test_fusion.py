"""Scores are sums of their parts, include shares of the neighbours' scores, and stay in [0, 1]."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.search.fusion import Window, fuse, fuse_candidates, preliminary_order
from kernel.search.hits import Candidates
from kernel.search.index import Hit, Scored, Weights

RANKS = st.none() | st.floats(1e-6, 1e6)
COSINES = st.none() | st.floats(-1, 1).filter(lambda cosine: cosine == 0 or abs(cosine) > 1e-6)
HITS = st.lists(st.tuples(RANKS, COSINES, COSINES), max_size=8).map(
    lambda found: [Hit(doc, "s", str(doc), rank, None, cosine, late) for doc, (rank, cosine, late) in enumerate(found)]
)
WEIGHT = st.floats(0.01, 1)


def windows(size: int) -> list[Window]:
    """A window around each of `size` documents in order."""

    def at(number: int) -> int | None:
        return number if 0 <= number < size else None

    return [Window(at(doc - 2), at(doc - 1), doc, at(doc + 1), at(doc + 2)) for doc in range(size)]


def hits_with(*cosines: float) -> list[Hit]:
    return [Hit(doc, "s", str(doc), None, None, cosine) for doc, cosine in enumerate(cosines)]


def columns(hits: list[Hit]) -> Candidates:
    evidence = [(hit.text_rank, hit.similarity, hit.late) for hit in hits]
    return Candidates(np.array([hit.doc for hit in hits], np.int64), *np.array(evidence, float).reshape(-1, 3).T)


def fused(hits: list[Hit], weights: Weights, around: list[Window], neighbours: float) -> list[Scored]:
    return fuse_candidates(columns(hits), weights, around, neighbours).scored(len(hits))


@given(HITS, WEIGHT, WEIGHT, WEIGHT, WEIGHT)
def test_scores_are_sorted_sums_of_parts_between_0_and_1(
    hits: list[Hit], words: float, meaning: float, late: float, neighbours: float
) -> None:
    weights = Weights(words, meaning, late, neighbours)
    for found in (fuse(hits, weights), fused(hits, weights, windows(len(hits)), neighbours)):
        assert sorted(one.hit.doc for one in found) == [hit.doc for hit in hits]
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert all(0 <= one.score <= 1 for one in found)
        assert [sum(one.parts) for one in found] == pytest.approx([one.score for one in found])


@given(HITS, WEIGHT, WEIGHT)
def test_preliminary_order_equals_fusion_of_bm25_and_cosine(hits: list[Hit], words: float, meaning: float) -> None:
    weights = Weights(words, meaning, 0, 0)

    assert [hits[at] for at in preliminary_order(columns(hits), weights)] == [one.hit for one in fuse(hits, weights)]


def test_missing_late_interaction_score_counts_as_the_median() -> None:
    hits = [Hit(doc, "s", str(doc), None, None, 0.5, late) for doc, late in enumerate((None, 0.2, 0.4, 0.8))]

    found = [(one.hit.doc, one.score) for one in fuse(hits, Weights(0, 0.5, 0.5, 0))]

    assert found == [(3, 1.0), (0, pytest.approx(0.75)), (2, pytest.approx(0.75)), (1, pytest.approx(0.625))]


def test_neighbour_scores_decay_with_distance() -> None:
    found = fused(hits_with(1.0, 0.0, 0.0, 0.0, 0.2), Weights(0, 1, 0), windows(5), 0.1)

    assert [(one.hit.doc, one.score) for one in found] == [
        (0, 1.0),
        (4, pytest.approx(0.2)),
        (1, pytest.approx(0.1)),
        (2, pytest.approx(0.06 + 0.012)),
        (3, pytest.approx(0.02)),
    ]
    assert {one.hit.doc: one.parts.neighbours for one in found}[1] == pytest.approx(0.1)


def test_neighbours_need_a_weight_and_a_window() -> None:
    hits, weights = hits_with(1.0, 0.5), Weights(0, 1, 0)

    alone = fused(hits, weights, [], 0)
    assert fused(hits, weights, windows(2), 0) == alone
    assert fused(hits, weights, [Window(None, 7, 0, 8, None)], 0.5) == alone

"""Scores are sums of their parts, include shares of the neighbours' scores, and stay in [0, 1]."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from kernel.search.fusion import Candidates, Reading, fuse, fuse_candidates, preliminary_order
from kernel.search.index import Hit, Scored, Weights

RANKS = st.none() | st.floats(1e-6, 1e6)
COSINES = st.none() | st.floats(-1, 1).filter(lambda cosine: cosine == 0 or abs(cosine) > 1e-6)
HITS = st.lists(st.tuples(RANKS, COSINES, COSINES), max_size=8).map(
    lambda found: [
        Hit(doc, "s", str(doc), rank, None, cosine, late) for doc, (rank, cosine, late) in enumerate(found, 1)
    ]
)
WEIGHT = st.floats(0.01, 1)


def windows(size: int) -> np.ndarray:
    """A window around each of `size` documents in order; ids begin at 1, and 0 is none."""

    def at(number: int) -> int:
        return number if 1 <= number <= size else 0

    return np.array([[at(doc + step) for step in range(-2, 3)] for doc in range(1, size + 1)], np.int64).reshape(-1, 5)


def hits_with(*cosines: float) -> list[Hit]:
    return [Hit(doc, "s", str(doc), None, None, cosine) for doc, cosine in enumerate(cosines, 1)]


def columns(hits: list[Hit]) -> Candidates:
    evidence = [(hit.text_rank, hit.similarity, hit.late) for hit in hits]
    words, meaning, late = np.array(evidence, float).reshape(-1, 3).T
    unknown = np.full(len(hits), np.nan)
    return Candidates(np.array([hit.doc for hit in hits], np.int64), words, meaning, late, unknown, unknown, unknown)


def fused(hits: list[Hit], weights: Weights, around: np.ndarray, neighbours: float) -> list[Scored]:
    return fuse_candidates(columns(hits), weights, around, neighbours).scored(len(hits))


@pytest.mark.slow
@given(HITS, WEIGHT, WEIGHT, WEIGHT, WEIGHT)
def test_scores_are_sorted_sums_of_parts_between_0_and_1(
    hits: list[Hit], words: float, meaning: float, late: float, neighbours: float
) -> None:
    weights = Weights(words, meaning, late, neighbours)
    for found in (fuse(hits, weights), fused(hits, weights, windows(len(hits)), neighbours)):
        assert sorted(one.hit.doc for one in found) == [hit.doc for hit in hits]
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert all(0 <= one.score <= 1 for one in found)
        assert [sum(astuple(one.parts)) for one in found] == pytest.approx([one.score for one in found])


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
        (1, 1.0),
        (5, pytest.approx(0.2)),
        (2, pytest.approx(0.1)),
        (3, pytest.approx(0.06 + 0.012)),
        (4, pytest.approx(0.02)),
    ]
    assert {one.hit.doc: one.parts.neighbours for one in found}[2] == pytest.approx(0.1)


def test_neighbours_need_a_weight_and_a_window() -> None:
    hits, weights = hits_with(1.0, 0.5), Weights(0, 1, 0)

    alone = fused(hits, weights, windows(0), 0)
    assert fused(hits, weights, windows(2), 0) == alone
    assert fused(hits, weights, np.array([[0, 7, 1, 8, 0]]), 0.5) == alone


def test_among_equals_a_text_in_the_language_of_the_query_is_first() -> None:
    fused = fuse_candidates(columns(hits_with(0.9, 0.9)), Weights(), languages=np.array([1, 2]))
    assert fused.found.docs.tolist() == [2, 1]
    assert fused.parts.sum(axis=1).tolist() == pytest.approx(fused.scores.tolist())


def test_meaning_counts_twice_for_a_request_of_which_no_text_has_half() -> None:
    by_words = Hit(1, "s", "1", 2.0, None, 0.2)
    by_meaning = Hit(2, "s", "2", 1.0, None, 0.4)
    found = columns([by_words, by_meaning])
    orders = [
        fuse_candidates(
            found._replace(exact=np.array([share, 0.0]), query=Reading(is_request=is_request)), Weights()
        ).found.docs.tolist()
        for share, is_request in ((0.2, False), (0.2, True), (0.6, True))
    ]
    assert orders == [[1, 2], [2, 1], [1, 2]]

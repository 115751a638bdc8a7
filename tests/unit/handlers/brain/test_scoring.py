"""The score of hybrid_search: signals in [0, 1] times weights, in the order relevance has, and weights as resolved."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.brain.scoring import (
    Evidence,
    Signals,
    Weights,
    importance,
    resolve_weights,
    rounded,
    signals,
    total_score,
)

PLAIN = Weights()
shares = st.floats(0, 1)
measures = st.none() | st.floats(-1, 1)
ranks = st.none() | st.floats(0, 1e9)
evidence = st.builds(Evidence, measures, ranks, shares, st.none() | st.integers(1, 5))
weightings = st.builds(Weights, shares, shares, shares, shares)


@pytest.mark.parametrize(
    ("candidates", "weights", "expected"),
    [
        ([], PLAIN, []),
        ([Evidence(0.8, 12.0, 1.0, 5)], PLAIN, [(0.4, 0.3, 0.2, 0.1)]),
        ([Evidence(None, None, 0.0, 1)], PLAIN, [(0.0, 0.0, 0.0, 0.02)]),
        (
            [Evidence(0.8, None, 0.5, None), Evidence(0.4, 6.0, 1.0, 3)],
            PLAIN,
            [(0.4, 0, 0.1, 0.06), (0.1, 0.3, 0.2, 0.06)],
        ),
        (
            [Evidence(0.9, 8.0, 1.0, 4), Evidence(0.45, 4.0, 1.0, 4)],
            PLAIN,
            [(0.4, 0.3, 0.2, 0.08), (0.1, 0.075, 0.2, 0.08)],
        ),
        ([Evidence(-0.2, 0.0, 1.0, 2)], PLAIN, [(0.0, 0.0, 0.2, 0.04)]),
        ([Evidence(0.8, 12.0, 1.0, 5)], Weights(0, 0, 0, 0), [(0.0, 0.0, 0.0, 0.0)]),
        ([Evidence(0.8, 12.0, 1.0, 5)], Weights(0, 1, 0, 0.5), [(0.0, 1.0, 0.0, 0.5)]),
        ([Evidence(0.8, 12.0, 7.0, 50)], PLAIN, [(0.4, 0.3, 0.2, 0.1)]),
    ],
)
def test_signal_is_weight_times_squared_share_of_the_best(
    candidates: list[Evidence], weights: Weights, expected: list[tuple[float, ...]]
) -> None:
    assert [rounded(found) for found in signals(candidates, weights)] == [Signals(*row) for row in expected]


@pytest.mark.parametrize(
    ("value", "expected"), [(None, 0.6), (0, 0.0), (1, 0.2), (2.5, 0.5), (3, 0.6), (5, 1.0), (9, 1.0), (-3, 0.0)]
)
def test_missing_importance_counts_as_neutral(value: float | None, expected: float) -> None:
    assert importance(value) == expected


@pytest.mark.parametrize(
    ("given_weights", "configured", "expected"),
    [
        ({}, {}, Weights(0.4, 0.3, 0.2, 0.1)),
        ({"vector": 0.0, "fts": None}, {"retrieval.vector_weight": "0.9"}, Weights(0.0, 0.3, 0.2, 0.1)),
        ({"fts": 1}, {"retrieval.vector_weight": "0", "retrieval.fts_weight": "0.5"}, Weights(0.0, 1, 0.2, 0.1)),
        ({}, {"retrieval.recency_weight": " 0.25 ", "retrieval.importance_weight": '"1"'}, Weights(0.4, 0.3, 0.25, 1)),
        (
            {},
            {
                f"retrieval.{name}_weight": bad
                for name, bad in {"vector": "much", "fts": "-1", "recency": "nan", "importance": "1e999"}.items()
            },
            PLAIN,
        ),
        ({}, {"retrieval.vector_weight": "", "retrieval.fts_weight": "1.01", "retrieval.other": "0"}, PLAIN),
    ],
)
def test_weight_is_given_else_configured_else_default(
    given_weights: dict[str, Any], configured: dict[str, str], expected: Weights
) -> None:
    assert resolve_weights(given_weights, configured) == expected


@given(st.lists(evidence, max_size=8), weightings)
def test_signals_and_scores_stay_in_bounds(candidates: list[Evidence], weights: Weights) -> None:
    for found in signals(candidates, weights):
        assert 0 <= found.vector <= weights.vector <= 1
        assert 0 <= found.fts <= weights.fts <= 1
        assert 0 <= found.recency <= weights.recency <= 1
        assert 0 <= found.importance <= weights.importance <= 1
        assert 0 <= total_score(found) <= weights.vector + weights.fts + weights.recency + weights.importance + 1e-12


@given(st.lists(evidence, min_size=1, max_size=8))
def test_score_is_monotonic_in_every_signal(candidates: list[Evidence]) -> None:
    better = Evidence(1.0, max((one.text_rank or 0.0 for one in candidates), default=0.0), 1.0, 5)

    scores = [total_score(found) for found in signals([better, *candidates], PLAIN)]

    assert scores[0] == max(scores)


@pytest.mark.slow
@given(st.lists(evidence, min_size=2, max_size=8), st.permutations(range(8)))
def test_scores_do_not_depend_on_candidate_order(candidates: list[Evidence], order: list[int]) -> None:
    order = [at for at in order if at < len(candidates)]
    found = signals(candidates, PLAIN)

    assert signals([candidates[at] for at in order], PLAIN) == [found[at] for at in order]


@given(st.lists(evidence, min_size=2, max_size=8))
def test_signal_keeps_the_order_of_its_raw_value(candidates: list[Evidence]) -> None:
    found = sorted(zip(candidates, signals(candidates, PLAIN), strict=True), key=lambda pair: pair[0].similarity or 0.0)

    assert [one.vector for _, one in found] == sorted(one.vector for _, one in found)


@given(st.lists(evidence, min_size=1, max_size=8), st.sampled_from(["vector", "fts", "recency", "importance"]))
def test_signal_of_weight_0_does_not_count(candidates: list[Evidence], name: str) -> None:
    weights = resolve_weights({name: 0}, {f"retrieval.{name}_weight": "1"})

    assert {getattr(found, name) for found in signals(candidates, weights)} == {0.0}

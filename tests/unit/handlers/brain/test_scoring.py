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
    relevance_weights,
    resolve_weights,
    rounded,
    signals,
    total_score,
)
from kernel.search import index
from kernel.search.index import Parts

PLAIN = Weights()
shares = st.floats(0, 1)
parts = st.builds(Parts, shares, shares, shares, shares)
evidence = st.builds(Evidence, shares, parts, shares, st.none() | st.integers(1, 5))
weightings = st.builds(Weights, shares, shares, shares, shares)
EQUAL = Parts(words=0.3, meaning=0.3, late=0.1)


@pytest.mark.parametrize(
    ("found", "weights", "expected"),
    [
        (Evidence(1.0, EQUAL, 1.0, 5), PLAIN, (0.4, 0.3, 0.2, 0.1)),
        (Evidence(0.5, EQUAL, 0.5, None), PLAIN, (0.1, 0.075, 0.1, 0.06)),
        (Evidence(0.5, Parts(words=0.5), 1.0, 3), PLAIN, (0.0, 0.175, 0.2, 0.06)),
        (Evidence(1.0, Parts(words=0.5), 1.0, 3), PLAIN, (0.4, 0.3, 0.2, 0.06)),
        (Evidence(0.5, Parts(neighbours=0.5), 0.0, 1), PLAIN, (0.1225, 0.0525, 0.0, 0.02)),
        (Evidence(0.0, Parts(), 0.0, 1), PLAIN, (0.0, 0.0, 0.0, 0.02)),
        (Evidence(1.0, EQUAL, 1.0, 5), Weights(0, 0, 0, 0), (0.0, 0.0, 0.0, 0.0)),
        (Evidence(1.0, Parts(words=1.0), 1.0, 5), Weights(0, 1, 0, 0.5), (0.0, 1.0, 0.0, 0.5)),
        (Evidence(1.0, EQUAL, 7.0, 50), PLAIN, (0.4, 0.3, 0.2, 0.1)),
    ],
)
def test_relevance_is_squared_and_divided_by_what_words_and_meaning_add(
    found: Evidence, weights: Weights, expected: tuple[float, ...]
) -> None:
    assert rounded(signals(found, weights)) == Signals(*expected)


def test_evidence_has_the_usual_weights_by_default_and_one_signal_alone_only_its_own() -> None:
    assert [*relevance_weights(PLAIN)] == pytest.approx([*index.Weights()])
    assert relevance_weights(Weights(0, 0.5, 1, 1)) == index.Weights(0.5, 0, 0, 0)
    assert relevance_weights(Weights(0.5, 0, 1, 1)) == index.Weights(0, 0.5, 0, 0)
    assert relevance_weights(Weights(0, 0, 1, 1)) == index.Weights()


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


@given(evidence, weightings)
def test_signals_and_scores_stay_in_bounds(found: Evidence, weights: Weights) -> None:
    scored = signals(found, weights)
    for value, weight in zip(scored.__rich_repr__(), weights.__rich_repr__(), strict=True):
        assert -1e-12 <= value[1] <= weight[1] + 1e-12
    assert 0 <= total_score(scored) <= weights.vector + weights.fts + weights.recency + weights.importance + 1e-12


@given(evidence, evidence)
def test_score_is_monotonic_in_every_signal(one: Evidence, other: Evidence) -> None:
    better = Evidence(max(one.relevance, other.relevance), one.parts, max(one.decay, other.decay), 5)

    assert total_score(signals(better, PLAIN)) >= total_score(signals(other, PLAIN)) - 1e-12


@given(evidence, st.sampled_from(["vector", "fts", "recency", "importance"]))
def test_signal_of_weight_0_does_not_count(found: Evidence, name: str) -> None:
    weights = resolve_weights({name: 0}, {f"retrieval.{name}_weight": "1"})

    assert getattr(signals(found, weights), name) == pytest.approx(0.0)

"""Late interaction finds the best token of a text for each of the query's, however the texts are put together."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel.config import MODEL
from kernel.embed import late_interaction
from kernel.embed.model import Embedder

EMBEDDER = Embedder(MODEL)
WORDS = st.lists(
    st.sampled_from("dog cat physician medicine the of garden roses truck Köln 日本 c++ 42".split()), max_size=30
)
TEXTS = st.lists(WORDS.map(" ".join), max_size=6)
MATRIX = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)


def scores(query: str, *texts: str) -> list[float]:
    asked, *held = [found.tokens for found in EMBEDDER.embed([query, *texts])]
    return EMBEDDER.interaction(asked, held)


def rows(ids: np.ndarray) -> np.ndarray:
    return MATRIX[ids]


def test_a_text_with_the_words_of_a_query_comes_first_and_one_about_the_same_before_a_stranger() -> None:
    same, alike, stranger = scores(
        "doctor's medicine", "the doctor's medicine", "my physician prescribed pills", "the truck would not start today"
    )

    assert 1 >= same > alike > stranger


def test_what_has_no_tokens_scores_nothing() -> None:
    assert scores("", "a text", "") == [0.0, 0.0]
    assert scores("a query", "", "a query")[0] == 0.0
    assert scores("a query") == []


@settings(max_examples=60, deadline=None)
@given(WORDS.map(" ".join), TEXTS)
def test_a_score_depends_on_no_other_text_and_is_at_most_one(query: str, texts: list[str]) -> None:
    together = scores(query, *texts)

    assert together == pytest.approx([scores(query, text)[0] for text in texts], abs=1e-4)
    assert all(score <= 1 + 1e-6 for score in together)


@settings(max_examples=60, deadline=None)
@given(WORDS.map(" ".join), TEXTS, st.sampled_from([0.25, 0.5, 1.0]))
@example("roses", ["the truck " * 10 + "roses", "roses " + "the truck " * 10], 0.5)
def test_the_beginning_of_a_text_is_scored_like_a_text_of_its_own(query: str, texts: list[str], share: float) -> None:
    asked, *held = [found.tokens for found in EMBEDDER.embed([query, *texts])]
    beginnings = [tokens[: 2 * late_interaction.OPENING_TOKENS] for tokens in held]  # two bytes each

    parts = zip(EMBEDDER.interaction(asked, held), EMBEDDER.interaction(asked, beginnings), strict=True)

    mixed = [(1 - share) * whole + share * begun for whole, begun in parts]
    assert EMBEDDER.interaction(asked, held, share) == pytest.approx(mixed, abs=1e-4)


def test_texts_are_compared_in_parts_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [np.arange(at, at + 7) for at in range(30)]
    whole = late_interaction.interaction(np.arange(5), texts, rows)

    monkeypatch.setattr(late_interaction, "_BATCH_TOKENS", 20)

    assert late_interaction.interaction(np.arange(5), texts, rows) == pytest.approx(whole, abs=1e-5)


def test_only_the_weightiest_tokens_of_a_long_query_are_compared() -> None:
    heavy = np.argsort(-np.linalg.norm(MATRIX, axis=1))[: late_interaction.MAX_QUERY_TOKENS]
    texts = [np.arange(10), np.arange(20, 40)]

    assert late_interaction.interaction(np.arange(40), texts, rows) == late_interaction.interaction(
        np.sort(heavy), texts, rows
    )

"""Late interaction scores the best text token for each query token, however texts are batched."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernel.core.config import MODEL
from kernel.embed import model
from kernel.embed.model import Embedder

EMBEDDER = Embedder(MODEL)
WORDS = st.lists(
    st.sampled_from("dog cat physician medicine the of garden roses truck Köln 日本 c++ 42".split()), max_size=30
)
TEXTS = st.lists(WORDS.map(" ".join), max_size=6)
MATRIX = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)


def scores(query: str, *texts: str) -> list[float]:
    query_tokens, *text_tokens = [found.tokens for found in EMBEDDER.embed([query, *texts])]
    return EMBEDDER.interaction(query_tokens, text_tokens)[0].tolist()


def rows(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return MATRIX[ids], np.linalg.norm(MATRIX[ids], axis=1)


def interaction(query: np.ndarray, texts: list[np.ndarray]) -> list[float]:
    sizes = np.array([len(text) for text in texts])
    return model.interaction(query, np.concatenate(texts), sizes, rows)[0].tolist()


def test_same_words_score_above_similar_words_above_unrelated_ones() -> None:
    same, similar, unrelated = scores(
        "doctor's medicine", "the doctor's medicine", "my physician prescribed pills", "the truck would not start today"
    )

    assert 1 >= same > similar > unrelated


def test_texts_and_queries_without_tokens_score_0() -> None:
    assert scores("", "a text", "") == [0.0, 0.0]
    assert scores("a query", "", "a query")[0] == 0.0
    assert scores("a query") == []


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(WORDS.map(" ".join), TEXTS)
def test_score_is_independent_of_other_texts_and_at_most_1(query: str, texts: list[str]) -> None:
    together = scores(query, *texts)

    assert together == pytest.approx([scores(query, text)[0] for text in texts], abs=1e-4)
    assert all(score <= 1 + 1e-6 for score in together)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(WORDS.map(" ".join), TEXTS, st.sampled_from([0.25, 0.5, 1.0]))
@example("roses", ["the truck " * 10 + "roses", "roses " + "the truck " * 10], 0.5)
def test_opening_is_scored_as_a_text_of_its_own(query: str, texts: list[str], share: float) -> None:
    query_tokens, *text_tokens = [found.tokens for found in EMBEDDER.embed([query, *texts])]
    openings = [tokens[: 2 * model.OPENING_TOKENS] for tokens in text_tokens]  # two bytes per token

    parts = zip(
        EMBEDDER.interaction(query_tokens, text_tokens)[0],
        EMBEDDER.interaction(query_tokens, openings)[0],
        strict=True,
    )

    mixed = [(1 - share) * whole + share * opening for whole, opening in parts]
    assert EMBEDDER.interaction(query_tokens, text_tokens, share)[0] == pytest.approx(mixed, abs=1e-4)


def test_scores_do_not_depend_on_the_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [np.arange(at, at + 7) for at in range(30)]
    whole = interaction(np.arange(5), texts)

    monkeypatch.setattr(model, "_BATCH_TOKENS", 20)

    assert interaction(np.arange(5), texts) == pytest.approx(whole, abs=1e-5)


def test_only_the_heaviest_tokens_of_a_long_query_count() -> None:
    heavy = np.argsort(-np.linalg.norm(MATRIX, axis=1))[: model.MAX_QUERY_TOKENS]
    texts = [np.arange(10), np.arange(20, 40)]

    assert interaction(np.arange(40), texts) == interaction(np.sort(heavy), texts)

"""Questions that ask the same are told from those that ask something else, in any order and any language."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.config import MODEL
from kernel.embed.model import Embedder
from kernel.search import paraphrase, paraphrase_weights
from kernel.search.equivalence import is_same_to, tell_apart
from loadtests.quality.languages import languages

EMBEDDER = Embedder(MODEL)
QUESTIONS = {name: [question for _, question in pairs] for name, pairs in languages().items()}
WORDS = st.sampled_from("who why how what is the best way to learn Python chess 3 2019 not fast ? кот 猫".split())
ASKED = st.lists(WORDS, max_size=12).map(lambda words: " ".join(words) + "?")


def same(one: str, other: str, *, strictly: bool = False) -> bool:
    """Whether two texts say the same, whatever tells them apart."""
    first, second = EMBEDDER.embed([one, other])
    return is_same_to(EMBEDDER, one, first, strictly=strictly)(other, second)


def odds(one: str, other: str) -> float:
    first, second = (
        paraphrase.question(EMBEDDER, text, found.tokens)
        for text, found in zip((one, other), EMBEDDER.embed([one, other]), strict=True)
    )
    if not first.weights.size or not second.weights.size:
        return 0.0
    found = paraphrase.signals(first, second, paraphrase.Apart(numbers=False, negation=False, names=False))
    return float(paraphrase.odds(found))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("How do I learn Python?", "What is the best way to learn Python?", True),
        ("How can I lose weight?", "What should I do to lose weight?", True),
        ("Is green tea good for you?", "Is green tea healthy?", True),
        ("When is the meeting?", "When is the meeting?  ", True),
        ("How do I learn Python?", "Where is Python used?", False),
        ("How do I recover my password?", "How do I change my password?", False),
        ("What causes hair loss?", "How can hair loss be prevented?", False),
        ("Who?", "Why?", False),
        ("!?", "??", False),
    ],
)
def test_questions_that_ask_the_same(one: str, other: str, expected: bool) -> None:
    assert same(one, other) == same(other, one) == expected


def test_only_questions_are_compared_as_questions() -> None:
    one, other = "How can I lose weight?", "What should I do to lose weight?"

    assert (same(one, other), same(one, other, strictly=True)) == (True, False)
    assert not same(one, other[:-1])
    assert [
        paraphrase.is_question(text) for text in (one, 'He asked "why?" ', "为什么？", "لماذا؟", "Why? No.", "")
    ] == [
        *[True] * 4,
        *[False] * 2,
    ]


@pytest.mark.parametrize("name", QUESTIONS)
def test_unrelated_questions_are_not_the_same(name: str) -> None:
    asked = [f"{question.rstrip('.。?？؟; ')}?" for question in QUESTIONS[name]]

    assert [pair for pair in permutations(asked, 2) if not tell_apart(*pair) and same(*pair)] == []
    assert all(same(one, one) for one in asked)


@given(ASKED, ASKED)
def test_a_question_asks_what_itself_does_and_order_does_not_matter(one: str, other: str) -> None:
    assert same(one, one)
    assert odds(one, other) == pytest.approx(odds(other, one), abs=1e-6)


@given(ASKED, st.integers(20, 99), st.integers(100, 999))
def test_numbers_tell_questions_apart(asked: str, one: int, other: int) -> None:
    assert tell_apart(f"{one} {asked}", f"{other} {asked}")


def test_every_signal_has_weights() -> None:
    bounds, hidden, units, direct = paraphrase_weights.network()

    width = len(paraphrase.SIGNALS)
    assert (bounds.shape, hidden.shape, direct.shape) == ((2, width), (width + 1, len(units)), (width + 1,))
    assert np.isfinite(paraphrase.odds([1e9] * width))


def test_a_long_question_takes_no_more_than_a_bounded_one() -> None:
    text = "why " * 100_000 + "?"
    found = paraphrase.question(EMBEDDER, text, EMBEDDER.embed([text])[0].tokens)

    assert (len(found.words), len(found.weights)) == (512, 256)

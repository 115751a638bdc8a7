"""Texts that say the same in other words are told from those that differ in a number, a name, a negation or a word."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.core.config import MODEL
from kernel.embed.model import Embedder
from kernel.search import index
from kernel.search.equivalence import is_common, is_negated, tell_apart
from tests.security.growth import growth
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

EMBEDDER = Embedder(MODEL)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path_factory.mktemp("same"), MODEL) as opened:
        yield opened


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("The meeting is at 10.", "The meeting is at 11.", True),
        ("Born on 4 May 1990", "The birthday is on May 4th, 1990", False),
        ("We need two keys", "We need three keys", True),
        ("We need two keys", "2 keys are what we need", False),
        ("عنده ٣ قطط", "عنده 3 قطط", False),
        ("Ada plays the violin", "Bruno plays the violin", True),
        ("The violin is played by Ada", "Ada plays the violin", False),
        ("Ada plays the violin", "She plays the violin", False),
        ("Билет в Москву", "Билет из Москвы", False),
        ("Билет в Москву", "Билет в Минск", True),
        ("It works", "It doesn't work", True),
        ("Er kommt", "Er kommt nicht", True),
        ("Le bureau est ouvert", "Le bureau n'est plus ouvert", True),
        ("The pan is hot", "The pan 'n' lid are hot", False),
        ("彼は来ます", "彼は来ません", True),
        ("他来了", "他没来", True),
        ("他去无锡", "他去", False),
        ("未来的计划", "计划", False),
        ("駐車場は無料です", "駐車場です", False),
        ("駐車場は無い", "駐車場です", True),
        ("荷物は少ない", "荷物です", False),
        ("Der Zug fährt um 8", "Um 8 fährt der Zug", False),
        (f"{'word ' * 16} at 10", "word " * 17, False),
        (f"{'word ' * 16} at 10", f"{'word ' * 16} at 11", True),
        ("", "", False),
    ],
)
def test_numbers_names_and_negation_tell_texts_apart(one: str, other: str, apart: bool) -> None:
    assert tell_apart(one, other) == tell_apart(other, one) == apart


def test_texts_say_the_same_if_no_word_that_matters_is_missing(store: IndexedStore) -> None:
    others = [
        "In the morning Alice has coffee to drink",
        "Alice drinks coffee in the morning",
        "Alice drinks cocoa in the morning",
        "Bruno drinks coffee in the morning",
        "Alice drinks no coffee in the morning",
        "The bridge is closed for repairs",
        "Алиса пьёт кофе",
        "!!!",
    ]

    found = store.reader.read(CALLER, lambda tx: index.says_the_same(tx, others[1], others))

    assert found == [True, True, *[False] * 6]
    assert store.reader.read(CALLER, lambda tx: index.says_the_same(tx, others[1], [])) == []


def test_what_a_text_says_alone_weighs_as_much_as_its_rarest_word() -> None:
    one, other, more = (
        EMBEDDER.embed([text])[0].tokens
        for text in ("Alice drinks coffee", "Alice drinks coffee", "Alice drinks coffee with cardamom")
    )

    assert EMBEDDER.unmatched(one, other) == pytest.approx((0, 0), abs=1e-5)
    lacking, saying = EMBEDDER.unmatched(one, more)
    assert (lacking == pytest.approx(0, abs=1e-5), saying > 1) == (True, True)
    assert EMBEDDER.unmatched(more, one) == pytest.approx((saying, lacking), abs=1e-5)
    assert EMBEDDER.unmatched(b"", more) == EMBEDDER.unmatched(one, b"") == (0, 0)


def test_common_words_say_nothing() -> None:
    assert [is_common(text) for text in ("the", "what is it", "", "the cat", "кот")] == [True, True, True, False, False]


WILD = st.text(st.one_of(st.characters(), st.sampled_from("aB 12.'’\n不ない١")), max_size=60)


@given(WILD, WILD)
def test_no_text_is_told_from_itself_and_order_does_not_matter(one: str, other: str) -> None:
    assert not tell_apart(one, one)
    assert tell_apart(one, other) == tell_apart(other, one)
    assert is_negated(one) in {True, False}


def test_long_numbers_take_no_time() -> None:
    assert tell_apart("1" * 100_000, "1" * 99_999 + "2")


@pytest.mark.slow
def test_names_are_told_apart_in_time_that_grows_with_the_texts() -> None:
    """Each name has a form among the words of the other text, so that all of them are looked for."""

    def compare(size: int) -> bool:
        one = " ".join(f"Namex{_letters(number)}" for number in range(size))
        long = " ".join(f"Name{'z' * 20}{_letters(number)}" for number in range(size))
        return tell_apart(f"{one} {long[:40]}", f"{long} nameyyyyy")

    grown = growth(compare, lambda size: size, (500, 1000, 4000))
    assert grown.linear, grown


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:04}")

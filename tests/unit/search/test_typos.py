"""A misspelt word finds what the word finds; words that are spelt right are left alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.config import MODEL
from kernel.search.query import Term
from kernel.search.typos import one_edit_away, respelled
from tests.unit.index_fixtures import open_indexed_store

TEXTS = [
    "The deployment to Frankfurt needs an approval",
    "Kubernetes restarts the billing service",
    "Tomatoes grow in the greenhouse",
    "Самолёт опоздал на два часа",
    "Η πτήση ακυρώθηκε χθες",
]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("deploymnet", {"0"}),
        ("aproval", {"0"}),
        ("Kubernets", {"1"}),
        ("kubernetes billling", {"1"}),
        ("greenhuose", {"2"}),
        ("самолет", {"3"}),
        ("самолёта", {"3"}),
        ("πτηση", {"4"}),
        ("ακυρώθικε", {"4"}),
        ("automobile", set[str]()),
        ("grew", set[str]()),
        ("xkcdqz", set[str]()),
        ("qwertyzx", set[str]()),
    ],
)
def test_a_misspelt_word_finds_what_the_word_finds(tmp_path: Path, query: str, found: set[str]) -> None:
    with open_indexed_store(tmp_path, MODEL) as store:
        store.put(TEXTS)
        assert store.lexical_keys(query) == found
        assert store.lexical_keys(query, all_matches=True) == found
        assert store.lexical_keys(query, within=[("docs", "")], per_partition=True) == found


def test_only_words_that_neither_the_index_nor_the_model_knows_are_respelled() -> None:
    terms = [Term("billing", "billing"), Term("vehicl", "vehicle"), Term("tomatos", "tomatos"), Term("to", "to")]
    counted = {"billing": 3, "tomato": 2, "potato": 9}

    def count(stems: list[str]) -> dict[str, int]:
        return {stem: counted[stem] for stem in stems if stem in counted}

    assert respelled(terms, {"billing": 3}, str.split, count, {"vehicle"}.__contains__) == (
        [Term("billing", "billing"), Term("vehicl", "vehicle"), Term("to", "to"), Term("tomato", "tomato")],
        {"tomato": 2},
    )
    assert respelled(terms[:2], {"billing": 3}, str.split, count, {"vehicle"}.__contains__) == (terms[:2], {})


@given(st.text(max_size=40))
def test_words_one_edit_away_are_bounded_and_differ(word: str) -> None:
    near = one_edit_away(word)

    assert len(near) <= 76 * (len(word) + 1)
    assert word not in near
    assert all(one.isalpha() or not one for one in near)


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=12), st.data())
def test_every_single_edit_can_be_undone(word: str, data: st.DataObject) -> None:
    typo = data.draw(st.sampled_from(sorted(one_edit_away(word))))

    assert typo == word or word in one_edit_away(typo)

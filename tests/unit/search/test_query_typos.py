"""A misspelt word finds the hits of the word; words that are spelt right are left alone."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.core.config import MODEL
from kernel.search import index
from kernel.search.query import Near, Term, misspelt, near_words, one_edit_away, respelled
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, open_indexed_store

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


def test_words_that_neither_the_index_nor_the_model_knows_are_misspelt() -> None:
    terms = [Term("billing", "billing"), Term("vehicl", "vehicle"), Term("tomatos", "tomatos"), Term("to", "to")]

    assert misspelt(terms, {"billing": 3}, {"vehicle"}.__contains__) == [terms[2]]


def test_near_words_are_those_of_the_index_the_most_frequent_first() -> None:
    counted = {"tomato": 2, "tomatoe": 5, "potato": 9}

    def count(stems: list[str]) -> dict[str, int]:
        return {stem: counted[stem] for stem in stems if stem in counted}

    assert near_words("tomatos", str.split, count) == [Near("tomatoe", "tomatoe", 5), Near("tomato", "tomato", 2)]


def test_a_query_is_read_with_the_most_frequent_near_words() -> None:
    near = {"tomatos": [Near("tomato", "tomato", 2), Near("tomatoe", "tomatoe", 1)], "grwe": []}

    assert respelled("Where do Tomatos grwe?", near) == "Where do tomato grwe?"


def test_a_misspelt_query_is_as_strong_as_the_query(tmp_path: Path) -> None:
    with open_indexed_store(tmp_path, MODEL) as store:
        store.put(TEXTS)

        def strengths(query: str) -> list[float]:
            def read(tx: Tx) -> list[float]:
                found = index.rerank(tx, query, index.find(tx, query), index.Weights())
                return [round(one, 6) for one in found.fused.strengths.tolist()]

            return store.reader.read(CALLER, read)

        assert strengths("the billling service") == strengths("the billing service")


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

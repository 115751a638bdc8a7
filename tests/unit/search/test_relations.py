"""A hit about the thing of a question that says something else of it is weak, whatever its words."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.core.config import MODEL
from kernel.search import index
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

FACTS = [
    "Biscuit is afraid of vacuum cleaners.",
    "Biscuit sleeps under the stairs.",
    "Biscuit gets a pill against worms every three months.",
    "Dr. Haas has been the vet of Biscuit since 2021.",
    "Biscuit likes Ben.",
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path, MODEL) as opened:
        yield opened


def verdicts(store: IndexedStore, query: str) -> dict[int, index.Verdict]:
    """Return the verdict on each document, best first."""

    def read(tx: Tx) -> dict[int, index.Verdict]:
        fused = index.rerank(tx, query, index.find(tx, query), index.Weights()).fused
        said = map(index.verdict, fused.strengths.tolist())
        return dict(zip(fused.found.docs.tolist(), said, strict=True))

    return store.reader.read(CALLER, read)


def strong(store: IndexedStore, query: str) -> set[int]:
    return {doc for doc, verdict in verdicts(store, query).items() if verdict == "strong"}


def test_a_question_for_another_relation_of_a_thing_has_weak_hits_only(store: IndexedStore) -> None:
    store.put(FACTS)

    assert verdicts(store, "Which colour is Biscuit?") == dict.fromkeys(range(1, 6), "weak")


def test_a_question_for_a_stored_relation_keeps_its_hit_strong(store: IndexedStore) -> None:
    store.put(FACTS)

    assert verdicts(store, "What is Biscuit afraid of?")[1] == "strong"


def test_a_fact_without_a_number_answers_no_question_for_a_number_even_by_itself(store: IndexedStore) -> None:
    store.put(["The billing service is owned by Mara.", "Mara has four cats."])

    assert strong(store, "Which port does the billing service listen on?") == set()
    assert strong(store, "How many cats does Mara have?") == {2}


def test_a_number_that_the_question_names_does_not_answer_it(store: IndexedStore) -> None:
    store.put(["Release 9 of the editor is called Heron."])

    assert strong(store, "How many bugs does release 9 of the editor have?") == set()


def test_a_day_answers_when_and_no_question_for_a_number(store: IndexedStore) -> None:
    store.put(["The billing service is deployed on Tuesdays."])

    assert strong(store, "When is the billing service deployed?") == {1}
    assert strong(store, "Which port does the billing service listen on?") == set()


def test_a_number_in_the_name_above_a_text_is_no_answer(store: IndexedStore) -> None:
    store.put(["facts/7\nThe billing service is owned by Mara."])

    assert strong(store, "Which port does the billing service listen on?") == set()


def test_a_person_in_other_words_answers_who(store: IndexedStore) -> None:
    store.put(FACTS)

    assert strong(store, "Who sold Biscuit?") == {4, 5}


def test_a_place_in_other_words_answers_where(store: IndexedStore) -> None:
    store.put(FACTS)

    assert strong(store, "Where is the basket of Biscuit?") == {2}


def test_a_misspelt_question_is_not_judged(store: IndexedStore) -> None:
    store.put(FACTS)

    assert strong(store, "Which qolourr is Biscuit?") == {1, 2, 3, 4, 5}


def test_other_languages_are_not_judged(store: IndexedStore) -> None:
    store.put(["Der Abrechnungsdienst gehört dem Team Kasse."])

    assert strong(store, "Auf welchem Port lauscht der Abrechnungsdienst?") == {1}

"""The memories of an earlier time are read from the history, those with the words of a query first."""

import pytest

from kernel.memories import as_of
from kernel.search.index import Weights
from kernel.server.app import Kernel
from tests.conftest import Call, Clock

LATER = "2026-01-02T04:00:00.000Z"


@pytest.fixture
def rewritten(call: Call, clock: Clock) -> str:
    """Memories with a number and one with a word, all of which were replaced; a time before that."""
    for name, content in {"a": "one", "b": "two", "c": "Fixing the boilers", "d": "four"}.items():
        clock.move(seconds=1)
        assert call("add_memory", path=name, content=content).fault is None
    then = clock.now
    clock.move(seconds=1)
    for name in "abcd":
        assert call("replace_memory", path=name, content="nothing").fault is None
    return then


def keys(kernel: Kernel, at: str, **asked: object) -> list[str]:
    found = kernel.store.read_sync(lambda tx: as_of.changed(tx, at, **asked))  # type: ignore[arg-type]
    return [document.key for document in found]


@pytest.mark.parametrize(
    ("query", "first"), [("fixed boiler", "c"), ("BOILERS", "c"), ("two", "b"), ("a", "a"), ("%", "d"), ("_ \0", "d")]
)
def test_with_more_changes_than_the_limit_those_with_most_words_are_read(
    kernel: Kernel, rewritten: str, query: str, first: str
) -> None:
    assert keys(kernel, rewritten, query=query, limit=1) == [first]
    assert set(keys(kernel, rewritten, query=query)) == {*"abcd"}


def test_without_a_query_the_last_changed_before_the_time_come_first(kernel: Kernel, rewritten: str) -> None:
    assert keys(kernel, rewritten, limit=2) == ["d", "c"]
    assert keys(kernel, rewritten, limit=5) == ["d", "c", "b", "a"]
    assert keys(kernel, LATER) == []


@pytest.mark.slow
def test_texts_of_a_search_are_limited_in_bytes_and_at_least_one_is_read(
    kernel: Kernel, call: Call, clock: Clock
) -> None:
    for name in "abcdef":
        call("add_memory", path=name, content=f"{name} " * 500_000)
    then = clock.now
    clock.move(seconds=1)
    call("clear_memory")

    assert len(keys(kernel, then, query="c")) == 5
    assert len(keys(kernel, then)) == 6


def test_texts_are_found_by_words_and_by_meaning(kernel: Kernel) -> None:
    texts, ids = ["The truck would not start", "Dinner was noodles", ""], [-3, -7, -5]

    def find(weights: Weights = Weights()) -> list[tuple[int, bool, bool, bool]]:
        found = kernel.store.read_sync(lambda tx: as_of.find_in(tx, "a vehicle, a truck", texts, ids, weights))
        return [(doc, *(value == value for value in rest)) for doc, *rest in zip(*found.columns[:4], strict=True)]

    assert find() == [(-7, False, True, True), (-3, True, True, True)]
    assert find(Weights(words=0, late=0)) == [(-7, False, True, False), (-3, False, True, False)]
    assert find(Weights(meaning=0, late=0)) == [(-3, True, False, False)]


def test_function_words_of_other_languages_do_not_count_by_meaning(kernel: Kernel) -> None:
    texts = ["Der Schlüssel liegt im Schrank", "Wo ist denn das und was ist mit dem"]

    def meaning(query: str) -> list[float]:
        weights = Weights(words=0, late=0)
        return kernel.store.read_sync(lambda tx: as_of.find_in(tx, query, texts, [-2, -1], weights)).meaning.tolist()

    assert meaning("Wo ist der Schlüssel für den Schrank?") == pytest.approx(meaning("Schlüssel Schrank?"))

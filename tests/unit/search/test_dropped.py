"""Documents that are deleted in numbers: no search finds them from then on, despite rows in full text."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernel.operations import compact, consistency
from kernel.search import dropped, index
from kernel.server import app
from kernel.store.long_work import run_steps
from kernel.store.transaction import Tx
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

MANY = dropped.LEAST + 36
STAY = {str(number) for number in range(5)}
GONE = [str(number) for number in range(100, 100 + MANY)]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[IndexedStore]:
    """Five documents that stay, and then many with the same words, in a scope of their own."""
    with open_indexed_store(tmp_path) as opened:
        opened.put([f"the train to Lyon leaves at {number}" for number in range(5)])
        opened.put([f"the train to Lyon leaves late on day {number}" for number in range(MANY)], scope="s", first=100)
        yield opened


def drop_keys(shelf: IndexedStore) -> None:
    shelf.drop(GONE)


def drop_scope(shelf: IndexedStore) -> None:
    shelf.write(lambda tx: index.drop_scope(tx, "docs", "s"))


def clear(shelf: IndexedStore) -> None:
    shelf.write(lambda tx: index.clear(tx, "docs"))
    shelf.put([f"the train to Lyon leaves at {number}" for number in range(5)])


drops = pytest.mark.parametrize("drop", [drop_keys, drop_scope, clear])


def pending(shelf: IndexedStore) -> int:
    return shelf.reader.values("SELECT count(*) FROM doc_dropped")[0][0]


def remove_words(shelf: IndexedStore) -> None:
    shelf.write(lambda tx: run_steps(tx, dropped.removal_steps()))


def is_sound(shelf: IndexedStore) -> bool:
    left = consistency.check(shelf.file, shelf.context, [])
    return left == [] and shelf.writer.check_full_text() == (True, True)


@drops
@pytest.mark.parametrize("removed", [False, True])
def test_documents_that_are_deleted_in_numbers_are_found_by_no_search(
    shelf: IndexedStore, drop: Callable[[IndexedStore], None], removed: bool
) -> None:
    drop(shelf)
    assert pending(shelf) >= MANY
    if removed:
        remove_words(shelf)
        assert pending(shelf) == 0
    for limit in (3, 5, 1000):
        assert len(shelf.lexical_keys("train Lyon", limit=limit)) == min(limit, 5)
        assert len(shelf.keys("train Lyon", lexical=False, limit=limit)) == min(limit, 5)
        assert len(shelf.lexical_keys("train Lyon", limit=limit, within=[("docs", None)])) == min(limit, 5)
    assert shelf.lexical_keys("train late day", all_matches=True) <= STAY
    assert shelf.lexical_keys("train", all_matches=True, within=[("docs", "")]) == STAY
    assert shelf.lexical_keys("train", per_partition=True, within=[("docs", ""), ("docs", "s")], limit=9) == STAY
    assert shelf.lexical_keys("train", within=[("docs", "s")]) == set()
    assert shelf.lexical_keys("late") == set()
    found = shelf.reader.read(CALLER, lambda tx: index.find(tx, "the train to Lyon leaves late", limit=5))
    docs = shelf.reader.read(CALLER, lambda tx: index.documents(tx, found.docs.tolist()))
    assert {document.key for document in docs.values()} == STAY
    assert shelf.reader.read(CALLER, lambda tx: index.count(tx, [("docs", None)])) == 5
    assert shelf.writer.check_full_text() == (True, True)


@drops
def test_the_transaction_that_deletes_finds_nothing_of_it(
    shelf: IndexedStore, drop: Callable[[IndexedStore], None]
) -> None:
    def work(tx: Tx) -> set[str]:
        if drop is drop_keys:
            for key in GONE:
                index.drop(tx, "docs", key)
        else:
            index.drop_scope(tx, "docs", "s")
        return {hit.id for hit in index.search(tx, "the train to Lyon leaves late", limit=5)}

    assert shelf.write(work) == STAY


def test_a_deletion_that_is_rolled_back_leaves_all_as_it_was(shelf: IndexedStore) -> None:
    shelf.roll_back(lambda tx: index.drop_scope(tx, "docs", "s"))
    assert pending(shelf) == 0
    assert len(shelf.lexical_keys("late", limit=1000)) == MANY
    assert len(shelf.keys("late", lexical=False, limit=1000)) == MANY + 5
    assert is_sound(shelf)


def test_few_documents_leave_full_text_at_once(shelf: IndexedStore) -> None:
    shelf.drop(GONE[: dropped.LEAST - 1])
    assert pending(shelf) == 0
    assert is_sound(shelf)


@drops
def test_what_is_put_again_while_words_are_left_is_a_document_of_its_own(
    shelf: IndexedStore, drop: Callable[[IndexedStore], None]
) -> None:
    drop(shelf)
    shelf.put(["a boat to Corfu"], scope="s", first=100)
    shelf.put(["the train to Lyon leaves late"], scope="s", first=101)
    assert shelf.lexical_keys("boat") == {"100"}
    assert shelf.lexical_keys("late") == {"101"}
    remove_words(shelf)
    assert shelf.lexical_keys("boat") == {"100"}
    assert shelf.lexical_keys("late") == {"101"}
    assert is_sound(shelf)


@pytest.mark.slow
def test_words_leave_a_little_at_a_time_with_a_sound_index_in_between(
    shelf: IndexedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dropped, "STEP_ROWS", 7)
    drop_scope(shelf)
    shelf.writer.check_full_text()
    steps, turns = dropped.removal_steps(), 0
    next(steps)
    before = pending(shelf)
    with suppress(StopIteration):
        while True:
            shelf.write(steps.send)
            turns += 1
            assert 0 <= before - pending(shelf) <= 7
            before = pending(shelf)
            shelf.put([f"a witness of turn {turns}"], first=1000 + turns)
            assert len(shelf.lexical_keys("witness", limit=1000)) == turns
            assert len(shelf.lexical_keys("train", limit=5)) == 5
            assert shelf.writer.check_full_text() == (True, True)
    assert turns == -(-MANY // 7)
    assert is_sound(shelf)


@pytest.mark.parametrize("space", ["scopes:knowledge", "docs"])
def test_parts_of_words_leave_too(shelf: IndexedStore, space: str) -> None:
    shelf.put(["an abracadabra"] * MANY, space)
    shelf.drop([str(number) for number in range(MANY)], space)
    assert shelf.reader.read(CALLER, lambda tx: index.containing(tx, ["racada"], [(space, None)])) == []
    assert shelf.writer.check_full_text() == (True, True)
    remove_words(shelf)
    assert is_sound(shelf)


@pytest.mark.slow
def test_check_reindex_and_compact_go_on_with_the_words_that_are_left(shelf: IndexedStore) -> None:
    for command in (
        lambda: consistency.check(shelf.file, shelf.context, app.DIALECTS[:0]),
        lambda: consistency.reindex(shelf.file, shelf.context, app.DIALECTS[:0]),
        lambda: compact.compact(shelf.file, shelf.context, lambda _line: None),
    ):
        shelf.put(["a cat that sleeps"] * MANY, scope="t", first=1000)
        shelf.write(lambda tx: index.drop_scope(tx, "docs", "t"))
        assert pending(shelf) == MANY
        command()
        assert pending(shelf) == 0
        assert is_sound(shelf)


@pytest.mark.slow
def test_a_rebuild_of_full_text_keeps_out_what_is_deleted_before_it_and_meanwhile(shelf: IndexedStore) -> None:
    shelf.put(["a cat that sleeps"] * MANY, scope="t", first=1000)
    drop_scope(shelf)
    steps = shelf.writer.rebuild_full_text()
    next(steps)
    for _ in range(8):
        shelf.write(steps.send)
    shelf.write(lambda tx: index.drop_scope(tx, "docs", "t"))
    shelf.put(["a cat that purrs"], scope="t", first=1000)
    with suppress(StopIteration):
        while True:
            shelf.write(steps.send)
            assert shelf.lexical_keys("train", limit=5) == STAY
            assert shelf.lexical_keys("cat") == {"1000"}
    assert pending(shelf) == 0
    assert is_sound(shelf)

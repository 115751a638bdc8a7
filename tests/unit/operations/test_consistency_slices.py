"""Check, repair and reindex work in slices: others write between them, and the index is sound after each."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.engines import yielding
from kernel.engines.sqlite.connection import Connection
from kernel.engines.yielding import Turns
from kernel.operations import consistency
from kernel.server import app
from kernel.store.context import CallContext
from tests.unit.index_fixtures import IndexedStore, open_indexed_store

DOCUMENTS = 60
CONTEXT = CallContext()


class CutOff(Exception):
    """Ends a command between two slices, as a kill does."""


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path) as opened:
        opened.put([f"the train to Lyon leaves at {number}" for number in range(DOCUMENTS)])
        yield opened


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[int], None]]:
    """Make a function that is called before each transaction of a command with its number; each takes one step."""
    called: list[Callable[[int], None]] = []
    write, number = Turns.write, iter(range(1_000_000))
    monkeypatch.setattr(yielding, "_HELD_SECONDS", 0.0)
    monkeypatch.setattr(yielding, "_SHORTEST_SECONDS", -1.0)

    def counted(turns: Turns, *arguments: Any) -> Any:
        turns._politeness.seconds = -1.0
        turn = next(number)
        for one in called:
            one(turn)
        return write(turns, *arguments)

    monkeypatch.setattr(Turns, "write", counted)
    return called


def reindexed(shelf: IndexedStore, *, alone: bool = False) -> int:
    return consistency.reindex(shelf.file, shelf.context, app.DIALECTS, alone=alone)


@pytest.mark.slow
def test_others_write_between_the_slices_of_a_reindex_and_find_all_that_is_there(
    shelf: IndexedStore, between: list[Callable[[int], None]]
) -> None:
    turns: list[int] = []

    def write_and_read(turn: int) -> None:
        turns.append(turn)
        shelf.put([f"a witness of turn {turn}"], space="others", first=1000 + turn)
        if turn % 3 == 0:
            shelf.drop([str(turn % DOCUMENTS)])
            shelf.put([f"the train to Lyon leaves at {turn % DOCUMENTS}"], first=turn % DOCUMENTS)
        assert len(shelf.keys("train", lexical=False, limit=1000)) == DOCUMENTS + turn + 1
        assert len(shelf.lexical_keys("Lyon", limit=1000)) == DOCUMENTS
        assert len(shelf.lexical_keys("witness", limit=1000)) == turn + 1

    between.append(write_and_read)
    done = reindexed(shelf)

    assert done >= DOCUMENTS
    assert len(turns) > DOCUMENTS / 8
    assert consistency.check(shelf.file, shelf.context, ()) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", [3, 8, 12, 17, 22])
def test_a_reindex_that_was_cut_off_leaves_a_sound_index_and_goes_on(
    shelf: IndexedStore, between: list[Callable[[int], None]], first: int
) -> None:
    before = shelf.writer.values("SELECT max(id) FROM doc_vector")[0][0]
    turns: list[int] = []

    def cut(turn: int) -> None:
        turns.append(turn)
        if len(turns) == first:
            raise CutOff

    between.append(cut)
    with pytest.raises(CutOff):
        reindexed(shelf)
    between.clear()
    refreshed(shelf)

    assert len(shelf.keys("train", lexical=False, limit=1000)) == DOCUMENTS
    assert len(shelf.lexical_keys("Lyon", limit=1000)) == DOCUMENTS
    begun = shelf.writer.values("SELECT count(*) FROM doc_vector WHERE id > :id", {"id": before})[0][0]
    assert consistency.check(shelf.file, shelf.context, ()) == []
    shelf.drop(["7", "59"])
    shelf.put(["a bus to Lyon"], first=7)

    assert reindexed(shelf) == DOCUMENTS - 1
    again = shelf.writer.values("SELECT max(id) FROM doc_vector")[0][0]
    assert again <= before + 1 + DOCUMENTS + 8, "what was done before the cut was done again"
    assert begun == 0 or first > 3
    assert consistency.check(shelf.file, shelf.context, ()) == []
    assert unfinished(shelf) == []


def refreshed(shelf: IndexedStore) -> None:
    """Drops the cached vectors, as in a new process."""
    shelf.context.search_cache.vectors.clear()


def unfinished(shelf: IndexedStore) -> list[Any]:
    """Return the state during a rebuild."""
    return shelf.writer.values(
        "SELECT name FROM sqlite_schema WHERE name LIKE 'doc%next%' OR name LIKE 'doc%old%' "
        "UNION ALL SELECT name FROM setting WHERE name LIKE 'reindex%' OR name LIKE 'full_text%'"
    )


@pytest.mark.slow
def test_a_reindex_of_another_model_does_not_go_on_where_the_first_was_cut_off(
    shelf: IndexedStore, between: list[Callable[[int], None]]
) -> None:
    def cut(turn: int) -> None:
        if shelf.writer.values("SELECT 1 FROM setting WHERE name = 'reindex_embedded'"):
            raise CutOff

    between.append(cut)
    with pytest.raises(CutOff):
        reindexed(shelf)
    between.clear()
    shelf.writer.values("UPDATE setting SET value = '40 60 60 another' WHERE name = 'reindex_embedded'")
    before = shelf.writer.values("SELECT max(id) FROM doc_vector")[0][0]

    assert reindexed(shelf) == DOCUMENTS
    assert shelf.writer.values("SELECT min(id) FROM doc_vector")[0][0] > before


@pytest.mark.slow
def test_others_write_while_a_damaged_index_is_repaired(
    shelf: IndexedStore, between: list[Callable[[int], None]]
) -> None:
    shelf.writer.script("DELETE FROM doc_vector WHERE doc % 2; UPDATE doc SET grams = 'other' WHERE id < 20")
    turns: list[int] = []

    def write(turn: int) -> None:
        turns.append(turn)
        shelf.put([f"a witness of turn {turn}"], space="others", first=1000 + turn)

    between.append(write)
    found = consistency.check(shelf.file, shelf.context, (), repair=True, alone=False)
    between.clear()

    assert [finding.part for finding in found] == ["full text", "documents"]
    assert len(turns) > DOCUMENTS / 8
    assert consistency.check(shelf.file, shelf.context, ()) == []


def test_a_check_takes_no_write_lock(shelf: IndexedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a check reads, another connection holds the lock and writes."""
    look = consistency._look

    def beside(*arguments: Any, **options: Any) -> Any:
        shelf.put(["written beside a check"], first=1000)
        return look(*arguments, **options)

    compare = Connection.check_full_text

    def compared(db: Connection) -> tuple[bool, bool]:
        tx = shelf.writer.begin(CONTEXT)
        try:
            return compare(db)
        finally:
            shelf.writer.rollback()
            assert tx.now

    monkeypatch.setattr(consistency, "_look", beside)
    monkeypatch.setattr(Connection, "check_full_text", compared)

    assert consistency.check(shelf.file, shelf.context, ()) == []


@pytest.mark.slow
def test_the_work_of_a_reindex_grows_with_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    for count in (200, 800):
        folder = tmp_path / str(count)
        folder.mkdir()
        with open_indexed_store(folder) as shelf:
            shelf.put([f"{number} trains to Lyon" for number in range(count)])
            counted = [0]

            class Counting(Connection):
                def __init__(self, *arguments: Any, counted: list[int] = counted, **options: Any) -> None:
                    super().__init__(*arguments, **options)

                    def count_steps() -> bool:
                        counted[0] += 1
                        return False

                    self._db.set_progress_handler(count_steps, 100, id="steps")

            monkeypatch.setattr("kernel.engines.sqlite.connection.Connection", Counting)
            reindexed(shelf, alone=True)
            steps.append(counted[0])
            monkeypatch.undo()
    assert steps[1] < 4.6 * steps[0]


def test_triggers_of_a_foreign_file_do_not_run(shelf: IndexedStore) -> None:
    shelf.writer.close()
    db = apsw.Connection(str(shelf.file))
    db.execute("CREATE TRIGGER doc_next_added AFTER INSERT ON doc BEGIN DELETE FROM setting; END")
    kept = db.execute("SELECT count(*) FROM setting").fetchall()
    db.close()

    opened = Connection(shelf.file, shelf.context, readonly=False)
    opened.script(
        "INSERT INTO doc (space, key, place, text, grams, dialect, tool, actor, created_at, updated_at) "
        "SELECT space, 'new', place, text, grams, dialect, tool, actor, created_at, updated_at FROM doc LIMIT 1"
    )
    assert opened.values("SELECT count(*) FROM setting") == kept
    opened.close()


def test_a_repair_of_a_sound_store_writes_nothing(shelf: IndexedStore) -> None:
    before = shelf.reader.pragma("data_version")
    assert consistency.check(shelf.file, shelf.context, app.DIALECTS[:0], repair=True) == []
    assert shelf.reader.pragma("data_version") == before

"""Compaction frees space, blocks of sketches agree with their vectors, and a killed process leaves a sound file."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from kernel.core.config import MODEL
from kernel.engines import yielding
from kernel.operations import consistency
from kernel.operations.compact import Choice, compact, tidy
from kernel.operations.consistency import Finding
from kernel.search import ann, index
from kernel.search.vectors import load_vectors
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit, history
from tests.conftest import Call, Clock
from tests.unit.index_fixtures import CALLER, IndexedStore, open_indexed_store

SUBJECTS = ["cats sleep on the warm roof", "the train to Lyon leaves at noon", "bread rises in a cold kitchen"]


def texts(count: int, first: int = 0) -> list[str]:
    return [f"{SUBJECTS[number % 3]}, near witness{number}" for number in range(first, first + count)]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[IndexedStore]:
    with open_indexed_store(tmp_path) as opened:
        yield opened


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ann, "BLOCK_ROWS", 8)


def findings(shelf: IndexedStore) -> list[Finding]:
    return consistency.check(shelf.file, shelf.context, ())


def size(shelf: IndexedStore) -> int:
    return int(shelf.writer.values("SELECT count(*) FROM doc_block")[0][0])


def refreshed(shelf: IndexedStore) -> None:
    """Drops the cached sketches, as in a new process."""
    shelf.context.search_cache.vectors.clear()


@pytest.mark.usefixtures("small_blocks")
def test_vectors_are_sealed_into_blocks_and_a_new_process_finds_the_same(shelf: IndexedStore) -> None:
    for first in range(0, 60, 6):
        shelf.put(texts(6, first), first=first)
    shelf.drop([str(number) for number in range(0, 60, 5)])
    known = shelf.search("Lyon", lexical=False, limit=100)

    refreshed(shelf)

    assert size(shelf) == 7
    assert shelf.search("Lyon", lexical=False, limit=100) == known
    assert {hit.id for hit in known} == {str(number) for number in range(60) if number % 5}
    assert findings(shelf) == []


@pytest.mark.usefixtures("small_blocks")
def test_group_larger_than_a_block_fills_several_blocks(shelf: IndexedStore) -> None:
    shelf.put(texts(50))

    assert (size(shelf), findings(shelf)) == (6, [])


@pytest.mark.usefixtures("small_blocks")
def test_search_is_lexical_until_the_sketches_are_loaded(shelf: IndexedStore) -> None:
    shelf.put(texts(80))
    refreshed(shelf)
    shelf.context.search_cache.warming = True

    early = shelf.search("witness7 bread", limit=5)
    shelf.reader.read(CALLER, load_vectors)
    late = shelf.search("feline", limit=5)

    assert early[0].id == "7"
    assert all(hit.text_rank is not None and hit.similarity is not None for hit in early)
    assert {int(hit.id) % 3 for hit in late if hit.text_rank is None} == {0}
    assert len(late) == 5


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
def test_tidy_renews_blocks_with_many_deleted_vectors(kernel: Kernel, call: Call) -> None:
    for number, text in enumerate(texts(60)):
        call("add_memory", path=f"m{number}", content=text)
    for number in range(0, 60, 2):
        call("drop_memory", path=f"m{number}")

    def state() -> tuple[int, int]:
        return kernel.store.read_sync(
            lambda tx: (ann.count_deletions(tx), ann.count_mismatches(tx, index.model_id(tx)))
        )

    worn = state()
    tidy(kernel.store, lambda: False)

    assert (worn, state()) == ((30, 0), (0, 0))
    found = {hit.id for hit in kernel.store.read_sync(lambda tx: index.search(tx, "bread", lexical=False, limit=100))}
    assert found == {f"m{number}" for number in range(1, 60, 2)}


def test_tidy_merges_the_full_text_of_a_small_store(kernel: Kernel, call: Call) -> None:
    def segments() -> int:
        rows = kernel.store.read_sync(lambda tx: tx.rows("kernel.compact.segments"))
        return int(rows[0][0])

    def ids() -> list[str]:
        return [hit.id for hit in kernel.store.read_sync(lambda tx: index.search(tx, "witness7", limit=5))]

    for number, text in enumerate(texts(9)):
        call("add_memory", path=f"m{number}", content=text)
    worn, before = segments(), ids()
    tidy(kernel.store, lambda: True)
    stopped = segments()
    tidy(kernel.store, lambda: False)

    assert (worn, stopped, segments()) == (9, 9, 1)
    assert ids() == before != []


@pytest.mark.slow
def test_compacted_file_is_as_small_as_a_new_one(tmp_path: Path, small_blocks: None) -> None:
    sizes: list[int] = []
    for name, held in (("worn", 3000), ("fresh", 1500)):
        (tmp_path / name).mkdir()
        worn = IndexedStore(tmp_path / name, MODEL)
        worn.put(texts(held))
        worn.drop([str(number) for number in range(1500, held)])
        reports: list[str] = []
        freed = compact(worn.file, worn.context, reports.append)
        assert freed.after == worn.file.stat().st_size
        assert reports[-1] == "full text merged"
        assert findings(worn) == []
        assert len(worn.search("bread", lexical=False, limit=2000)) == 1500
        sizes.append(freed.after)
        worn.close()

    assert sizes[0] <= 1.02 * sizes[1]


def test_compact_deletes_only_history_of_memories_deleted_before_a_time(shelf: IndexedStore, clock: Clock) -> None:
    def happened(key: str, *texts: str | None) -> None:
        shelf.write(lambda tx: [history.append(tx, "shelf", key, "changed", after=text) for text in texts])

    happened("deleted", "one", "two", None)
    happened("back again", "one", None, "two")
    happened("kept", "one")
    before = clock.move(seconds=1)
    happened("deleted later", "one", None)

    compact(shelf.file, shelf.context, lambda _: None, Choice(forget=before))

    left = shelf.writer.values("SELECT key, count(*) FROM history GROUP BY key ORDER BY key")
    assert left == [("back again", 3), ("deleted later", 2), ("kept", 1)]


def test_compact_expires_undo_of_long_ago_and_keeps_the_rest(kernel: Kernel, call: Call, clock: Clock) -> None:
    for path in ("old", "new"):
        call("add_memory", path=path, content="x")
        call("drop_memory", path=path)
        clock.move(hours=100)
    call("add_memory", path="last", content="x")

    def undoable() -> list[int]:
        return [entry.id for entry in kernel.store.read_sync(lambda tx: audit.read(tx, 9)) if entry.undoable]

    assert undoable() == [4, 2]
    file, context = kernel.config.file, kernel.store.context
    assert compact(file, context, lambda _: None, Choice()).undoable == 2
    assert compact(file, context, lambda _: None, Choice(undo_hours=150)).undoable == 1
    assert undoable() == [4]


@pytest.mark.slow
def test_compact_beside_others_works_in_slices_and_leaves_free_pages_in_the_file(
    shelf: IndexedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yielding, "_HELD_SECONDS", 0.0)
    shelf.put(texts(400))
    shelf.drop([str(number) for number in range(300)])
    written: list[int] = []
    write = yielding.Turns.write

    def with_others(turns: yielding.Turns, *arguments: Any) -> Any:
        written.append(len(written))
        shelf.put([f"between {len(written)}"], space="others", first=len(written))
        return write(turns, *arguments)

    monkeypatch.setattr(yielding.Turns, "write", with_others)
    beside = compact(shelf.file, shelf.context, lambda _: None, alone=False)
    among = len(written)
    whole = compact(shelf.file, shelf.context, lambda _: None, Choice(full=True), alone=False)

    assert among > 3
    assert beside.free > 0
    assert whole.after < beside.after
    assert len(shelf.lexical_keys("between", limit=1000)) == len(written)
    assert findings(shelf) == []


def running(program: str, file: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, str(file)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True)


COMPACT_PROGRAM = """
import sys
from pathlib import Path
from kernel.server import app
from kernel.core.config import MODEL
from kernel.operations.compact import Choice, compact
from kernel.search import ann
ann.BLOCK_ROWS = 16
context = app.base_context(MODEL)
while True:
    compact(Path(sys.argv[1]), context, lambda part: print(part, flush=True), Choice(forget="9"))
"""


@pytest.mark.slow
def test_killed_compact_leaves_a_sound_file(shelf: IndexedStore) -> None:
    chance, living = Random(1), {str(number) for number in range(400)}
    shelf.put(texts(400))
    for _ in range(4):
        gone = chance.sample(sorted(living), 60)
        shelf.drop(gone)
        living -= {*gone}
        killed = running(COMPACT_PROGRAM, shelf.file)
        assert killed.stdout is not None
        assert killed.stdout.readline()
        time.sleep(chance.random() / 20)
        killed.kill()
        killed.communicate()

        refreshed(shelf)
        assert sound(shelf.file)
        assert findings(shelf) == []
        assert shelf.keys("bread", lexical=False, limit=400) == living
        assert shelf.lexical_keys("near", limit=400) == living


REINDEX_PROGRAM = """
import sys
from pathlib import Path
from kernel.server import app
from kernel.core.config import MODEL
from kernel.operations import consistency
consistency._BATCH_ROWS = 4
consistency.reindex(Path(sys.argv[1]), app.base_context(MODEL), app.DIALECTS, lambda done, _: print(done, flush=True))
"""


@pytest.mark.slow
def test_killed_reindex_keeps_full_text_and_the_next_one_completes_it(
    shelf: IndexedStore,
) -> None:
    chance, living = Random(2), {str(number) for number in range(400)}
    shelf.put(texts(400))
    for _ in range(4):
        killed = running(REINDEX_PROGRAM, shelf.file)
        assert killed.stdout is not None
        reports = [killed.stdout.readline() for _ in range(chance.randrange(1, 40))]
        killed.kill()
        begun = int((reports + killed.communicate()[0].split())[-1])

        refreshed(shelf)
        assert sound(shelf.file)
        assert shelf.lexical_keys("near", limit=400) == living
        assert begun < 400
        assert len(shelf.keys("bread", lexical=False, limit=400)) >= begun

    consistency.reindex(shelf.file, shelf.context, app.DIALECTS)
    refreshed(shelf)
    assert findings(shelf) == []
    assert shelf.keys("bread", lexical=False, limit=400) == living


def sound(file: Path) -> bool:
    db = apsw.Connection(str(file))
    found: Sequence[tuple[object, ...]] = db.execute("PRAGMA integrity_check").fetchall()
    db.close()
    return found == [("ok",)]

"""Damage to full text and vectors is found, counted and repaired from the rows, which never change."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.calls.tools import Reply
from kernel.core.config import MODEL, Config
from kernel.core.errors import Fault
from kernel.operations import consistency
from kernel.operations.backup import backup_file
from kernel.operations.index_check import Finding
from kernel.search import index
from kernel.server import app
from kernel.server.app import Kernel, open_kernel
from kernel.server.upkeep import Upkeep
from kernel.store.transaction import Tx
from tests.conftest import Call
from tests.support.operations_consistency import WRITER, adding
from tests.unit.tiny_model import DIMENSIONS, tiny_model

TEXTS = {
    "green/tea": "Steep for two minutes at seventy degrees.",
    "dog": "The dog is called Illa and barks at cyclists.",
    "knots": "A quipu records numbers as knots on cords.",
    "empty words": "nul \0 inside, quotes ' and \", 日本語のテキスト",
}
BASE = "SELECT 'row', path, content, updated_at FROM paths_memory UNION ALL SELECT 'event', id, after, at FROM history"


@pytest.fixture
def config(tmp_path: Path, migrated: Path) -> Config:
    """A closed file with a few memories."""
    config = Config(data=shutil.copytree(migrated, tmp_path / "data"))
    running = open_kernel(config)
    for path, content in TEXTS.items():
        running.store.write_sync(adding(path, content), WRITER)
    running.store.close()
    return config


@contextmanager
def engine(config: Config) -> Iterator[apsw.Connection]:
    """A plain connection to the file, to damage it."""
    db = apsw.Connection(str(config.file))
    try:
        yield db
    finally:
        db.close()


def rows(config: Config) -> list[tuple[Any, ...]]:
    with engine(config) as db:
        return sorted(db.execute(BASE).fetchall(), key=repr)


def check(config: Config, *, repair: bool = False) -> list[Finding]:
    return consistency.check(config.file, app.base_context(config.model), app.DIALECTS, repair=repair)


def found_by(config: Config, query: str, caller: Callable[[Dispatch], Call]) -> dict[str, dict[str, Any]]:
    """The results of a recall with their signals, by path."""
    running = open_kernel(config)
    try:
        return recalled(caller(running.dispatch)("recall", query=query, explain=True))
    finally:
        running.store.close()


def recalled(reply: Reply) -> dict[str, dict[str, Any]]:
    assert reply.fault is None
    return {
        memory["id"].partition("/")[2]: memory["signals"]
        for memory in msgspec.json.decode(reply.structured or b"")["memories"]
    }


FULL_TEXT = Finding("full text", 1, "differs from the documents")
PARTS = Finding("parts of words", 1, "differ from the documents")
NO_VECTOR = "without a vector of the configured model"
LACKING = "memories the index lacks or holds differently"
EXTRA = "documents without a memory"
COUNTS = Finding("counts", 1, "wrong numbers of memories of a day")


def finding(part: str, count: int, what: str) -> list[Finding]:
    return [Finding(part, count, what)]


DAMAGE: dict[str, tuple[str, list[Finding]]] = {
    "full text emptied": ("INSERT INTO doc_fts (doc_fts) VALUES ('delete-all')", [FULL_TEXT]),
    "full text segments gone": ("DELETE FROM doc_fts_data WHERE id > 10", [FULL_TEXT]),
    "full text structure gone": ("DELETE FROM doc_fts_data", [FULL_TEXT]),
    "full text segments garbled": ("UPDATE doc_fts_data SET block = x'ffffffffffffff' WHERE id > 10", [FULL_TEXT]),
    "full text sizes gone": ("DELETE FROM doc_fts_docsize", [FULL_TEXT]),
    "full text holds a stranger": (
        "INSERT INTO doc_fts (rowid, text, grams, place) VALUES (99, 'stranger', '', 'p1')",
        [FULL_TEXT],
    ),
    "parts of words hold a stranger": ("INSERT INTO doc_part (rowid, text) VALUES (99, 'stranger')", [PARTS]),
    "a vector gone": ("DELETE FROM doc_vector WHERE id = 2", finding("documents", 1, NO_VECTOR)),
    "all vectors gone": ("DELETE FROM doc_vector", finding("documents", 4, NO_VECTOR)),
    "a vector without a document": (
        "INSERT INTO doc_vector (doc, model, place, scale, vector, sketch, tokens) VALUES (99, 1, 1, 1, x'', x'', x'')",
        finding("vectors", 1, "without a document"),
    ),
    "sketches in a block gone": (
        "INSERT INTO doc_block (last, model, ids, docs, places, scales, sketches, vectors) "
        "VALUES (3, 1, x'', x'', x'', x'', x'', x'')",
        finding("sketches", 3, "not as with their vectors"),
    ),
    "sketches in a block garbled": (
        "INSERT INTO doc_block (last, model, ids, docs, places, scales, sketches, vectors) "
        "VALUES (3, 1, x'01', x'02', x'03', x'04', x'05', x'06')",
        finding("sketches", 3, "not as with their vectors"),
    ),
    "a vector in a wrong place": (
        "UPDATE doc_vector SET place = 7 WHERE id = 1",
        finding("vectors", 1, "without a document"),
    ),
    "a vector of another model": (
        "UPDATE doc_vector SET model = 7 WHERE id IN (1, 3)",
        finding("documents", 2, NO_VECTOR),
    ),
    "a document gone": (
        "DELETE FROM doc WHERE key = 'dog'",
        [FULL_TEXT, Finding("vectors", 1, "without a document"), COUNTS, Finding("paths", 1, LACKING)],
    ),
    "a document changed": (
        "UPDATE doc SET text = 'something else' WHERE key = 'dog'",
        [FULL_TEXT, Finding("paths", 1, LACKING)],
    ),
    "a document without a memory": (
        "INSERT INTO doc (space, key, place, text, grams, dialect, tool, actor, created_at, updated_at) "
        "SELECT space, 'ghost', place, text, grams, dialect, tool, actor, created_at, updated_at FROM doc WHERE id = 1",
        [FULL_TEXT, Finding("documents", 1, NO_VECTOR), COUNTS, Finding("paths", 1, EXTRA)],
    ),
    "the whole index gone": (
        "DELETE FROM doc; DELETE FROM doc_vector; DELETE FROM doc_fts_data; DELETE FROM doc_fts_docsize",
        [FULL_TEXT, COUNTS, Finding("paths", 4, LACKING)],
    ),
    "the counts gone": ("DELETE FROM doc_day", [COUNTS]),
    "a wrong count": ("UPDATE doc_day SET documents = documents + 3", [COUNTS]),
    "a count of nothing": ("INSERT INTO doc_day VALUES ('brain:x', '2026-01-01', 2)", [COUNTS]),
}


def test_consistent_file_has_no_findings(config: Config) -> None:
    assert check(config) == []


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
def test_each_kind_of_damage_is_found_and_repaired_without_changing_rows(
    config: Config, damage: str, caller: Callable[[Dispatch], Call]
) -> None:
    statement, wanted = DAMAGE[damage]
    before = rows(config)
    with engine(config) as db:
        db.execute(statement)
    assert check(config) == wanted
    assert check(config, repair=True) == wanted
    assert check(config) == []
    assert rows(config) == before
    hits = found_by(config, "dog barks at cyclists", caller)
    assert hits["dog"]["words"] is not None
    assert hits["dog"]["meaning"] > 0.5
    assert set(hits) <= set(TEXTS)


@pytest.mark.slow
def test_one_repair_fixes_all_kinds_of_damage(config: Config) -> None:
    before = rows(config)
    with engine(config) as db:
        for name in (
            "a vector gone",
            "a vector without a document",
            "a document changed",
            "full text segments garbled",
        ):
            db.execute(DAMAGE[name][0])
    assert [finding.part for finding in check(config, repair=True)] == ["full text", "vectors", "documents", "paths"]
    assert check(config) == []
    assert rows(config) == before


def test_check_without_repair_changes_nothing(config: Config) -> None:
    with engine(config) as db:
        db.execute(DAMAGE["a document gone"][0])
    assert check(config) == check(config) != []


def test_missing_vectors_are_no_finding_without_a_model(config: Config) -> None:
    with engine(config) as db:
        db.execute("DELETE FROM doc_vector")
    assert check(config._replace(model=None)) == []


@pytest.mark.parametrize("table", ["paths_memory", "doc", "history"])
def test_damaged_file_is_a_storage_fault_and_stays_unchanged(config: Config, table: str) -> None:
    with engine(config) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone() or (0,)
        size = db.pragma("page_size")
    content = bytearray(config.file.read_bytes())
    content[(page - 1) * size : page * size] = b"\xa5" * size
    config.file.write_bytes(content)
    for repair in (False, True):
        with pytest.raises(Fault, match=r"The file is damaged: .*`quipu restore`") as raised:
            check(config, repair=repair)
        assert raised.value.code == "storage"
    assert config.file.read_bytes() == content


@pytest.mark.slow
def test_reindex_rebuilds_every_vector_and_reports_progress(config: Config, caller: Callable[[Dispatch], Call]) -> None:
    with engine(config) as db:
        db.execute("UPDATE doc_vector SET vector = zeroblob(length(vector))")
        db.execute(DAMAGE["full text emptied"][0])
    reports: list[tuple[int, int]] = []
    done = consistency.reindex(
        config.file, app.base_context(config.model), app.DIALECTS, lambda done, total: reports.append((done, total))
    )
    assert (done, reports) == (4, [(4, 4)])
    assert check(config) == []
    assert found_by(config, "quipu knots", caller)["knots"]["meaning"] > 0.5


@pytest.mark.slow
def test_wal_of_a_reindex_stays_short(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.engines.sqlite.connection._CHECKPOINT_PAGES", 20)
    running = open_kernel(config)
    for number in range(1000):
        running.store.write_sync(adding(f"filler/{number}", f"Memory {number} of birds. " * 20), WRITER)
    running.store.close()
    log = config.file.with_name(f"{config.file.name}-wal")
    sizes: list[int] = []
    consistency.reindex(
        config.file, app.base_context(config.model), app.DIALECTS, lambda *_: sizes.append(log.stat().st_size)
    )
    assert max(sizes) < 2 << 20


@pytest.mark.slow
def test_backup_during_writes_holds_a_prefix_of_them(kernel: Kernel, tmp_path: Path) -> None:
    def write(writer: int) -> None:
        for turn in range(40):
            kernel.store.write_sync(adding(f"{writer}/{turn:03}", "x" * 2000), WRITER)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    copies = [tmp_path / f"copy-{number}" for number in range(3)]
    for copy in copies:
        copy.mkdir()
        backup_file(kernel.config.file, kernel.store.context, copy / "quipu.db")
    for writer in writers:
        writer.join()
    for copy in copies:
        assert oct((copy / "quipu.db").stat().st_mode & 0o777) == "0o600"
        config = Config(data=copy)
        assert check(config) == []
        with engine(config) as db:
            paths = [
                path for (path,) in db.execute("SELECT path FROM paths_memory WHERE path GLOB '[0-9]*' ORDER BY 1")
            ]
        counts = [len([path for path in paths if path.startswith(f"{writer}/")]) for writer in range(4)]
        assert paths == [f"{writer}/{turn:03}" for writer in range(4) for turn in range(counts[writer])]


@pytest.mark.slow
def test_backup_ends_despite_constant_commits(kernel: Kernel, tmp_path: Path) -> None:
    for number in range(600):  # in a call each, whose processor time is limited
        kernel.store.write_sync(adding(f"before/{number}", "x" * 4000), WRITER)
    reports: list[int] = []

    def commit(done: int, _total: int) -> None:
        reports.append(done)
        assert len(reports) < 100
        kernel.store.write_sync(adding(f"meanwhile/{len(reports)}", "y" * 2000), WRITER)

    (tmp_path / "copy").mkdir()
    backup_file(kernel.config.file, kernel.store.context, tmp_path / "copy" / "quipu.db", commit)

    assert len(reports) > 2
    assert reports == sorted(reports)
    with engine(Config(data=tmp_path / "copy")) as db:
        (counts,) = db.execute("SELECT sum(path GLOB 'before/*'), sum(path GLOB 'meanwhile/*') FROM paths_memory")
    assert counts == (600, 0)


@pytest.mark.slow
def test_another_model_replaces_every_vector_while_calls_are_served(
    config: Config, tmp_path: Path, caller: Callable[[Dispatch], Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consistency, "_BATCH_ROWS", 256)
    old = open_kernel(config)
    for number in range(300):
        old.store.write_sync(adding(f"number/{number}", "red green blue"[: 4 + number % 3]), WRITER)
    old.store.close()
    running = open_kernel(config._replace(model=tiny_model(tmp_path / "tiny")))
    call = caller(running.dispatch)

    def vectors() -> list[Any]:
        with engine(config) as db:
            return db.execute("SELECT model, length(vector), count(*) FROM doc_vector GROUP BY 1, 2").fetchall()

    seen: list[tuple[list[Any], bool]] = []

    def look() -> bool:
        hits = recalled(call("recall", query="dog barks", explain=True))
        assert hits["dog"]["words"] is not None
        meaning = recalled(call("recall", query="red", limit=100, max_tokens=100_000, explain=True))
        seen.append((vectors(), any(signals["meaning"] is not None for signals in meaning.values())))
        return False

    assert consistency.embed_missing(running.store, look) == 304
    assert seen == [
        ([(1, 256, 304)], False),
        ([(1, 256, 48), (2, DIMENSIONS, 256)], True),
        ([(2, DIMENSIONS, 304)], True),
    ]
    assert consistency.embed_missing(running.store, look) == 0
    running.store.close()
    assert check(running.config) == []


def test_embed_missing_stops_on_request(kernel: Kernel, call: Call) -> None:
    call("add_memory", path="a", content="hello")
    with engine(kernel.config) as db:
        db.execute("DELETE FROM doc_vector")
    assert consistency.embed_missing(kernel.store, lambda: True) == 0
    assert consistency.embed_missing(kernel.store, lambda: False) == 5


def test_busy_store_delays_embed_missing(config: Config) -> None:
    running = open_kernel(config._replace(queue_wait=50))
    while running.store.load().writes:  # the work of an earlier process is finished at the start
        time.sleep(0.001)
    running.store.write_sync(lambda tx: index.put(tx, "paths", "a", "hello"))
    with engine(config) as db:
        db.execute("DELETE FROM doc_vector")
    held, released = threading.Event(), threading.Event()

    def hold(_tx: Tx) -> None:
        held.set()
        released.wait(10)

    writer = threading.Thread(target=running.store.write_sync, args=(hold,))
    writer.start()
    assert held.wait(10)
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(True)
        if len(asked) == 2:  # the first batch was refused
            released.set()
        return False

    assert consistency.embed_missing(running.store, stop) == len(TEXTS) + 1
    assert len(asked) >= 3
    writer.join()
    running.store.close()


def test_embed_missing_does_nothing_without_a_model(config: Config) -> None:
    running = open_kernel(config._replace(model=None))
    assert consistency.embed_missing(running.store, lambda: False) == 0
    running.store.close()


@pytest.mark.parametrize("model", [MODEL, None], ids=["a model", "none"])
def test_warm_calls_loaded_once_with_or_without_a_model(tmp_path: Path, model: Path | None) -> None:
    kernel = open_kernel(Config(data=tmp_path / "data", model=model))
    embedder, stopping, ready = kernel.store.context.embedder, threading.Event(), list[bool]()
    stopping.set()

    Upkeep(kernel).run(stopping, lambda: ready.append(embedder is None or embedder.ready))
    kernel.store.close()

    assert ready == [True]

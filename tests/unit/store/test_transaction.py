"""A call is atomic, its neighbours lose nothing, and a reader cannot write."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.calls.dispatch import catch_faults
from kernel.core.errors import Fault
from kernel.embed.model import Embedding
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.errors import as_fault, sqlite_version
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx
from tests.conftest import Clock
from tests.unit.store_fixtures import STATEMENTS, THING_CONTEXT, add, later, names, things

CONTEXT = CallContext("things", "add", "tester")
Group = Callable[..., list[Any]]


class RecordingEmbedder:
    """An embedder that records the texts it embeds."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: list[str]) -> list[Embedding]:
        self.embedded += texts
        return [Embedding(text.encode(), 1.0, b"") for text in texts]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    opened = things(tmp_path / "things.db")
    yield opened
    opened.close()


@pytest.fixture
def group(db: Connection) -> Group:
    """Runs calls as one group and commits them; the answers."""

    def run(*calls: Callable[[Tx], Any]) -> list[Any]:
        tx = db.begin(CONTEXT)
        answers = [db.call(tx, CONTEXT, catch_faults, work) for work in calls]
        db.commit(tx)
        return answers

    return run


def stored(db: Connection) -> list[str]:
    return db.read(CONTEXT, names)


def _same(value: object) -> object:
    return value


def then_fail(*steps: Callable[[Tx], Any]) -> Callable[[Tx], Any]:
    def work(tx: Tx) -> None:
        for step in steps:
            step(tx)
        raise Fault("conflict", "No.")

    return work


def outside(done: list[str], name: str) -> Callable[[Tx], Any]:
    """A call that does something outside the database and can undo it."""

    def work(tx: Tx) -> str:
        done.append(name)
        tx.on_rollback(lambda: done.remove(name))
        return name

    return work


def test_a_fault_undoes_what_its_own_call_did_outside_the_database(db: Connection, group: Group) -> None:
    done: list[str] = []
    group(outside(done, "a"), then_fail(outside(done, "b"), outside(done, "c")), outside(done, "d"))
    assert done == ["a", "d"]
    db.rollback()
    assert done == ["a", "d"]


def test_a_rollback_undoes_what_every_call_did_outside_the_database(db: Connection) -> None:
    done: list[str] = []

    def refuse(_tx: Tx, _items: list[str]) -> None:
        raise OverflowError

    tx = db.begin(CONTEXT)
    for work in (outside(done, "a"), outside(done, "b"), lambda tx: tx.defer(refuse, "c")):
        db.call(tx, CONTEXT, catch_faults, work)
    with pytest.raises(OverflowError):
        db.commit(tx)
    assert done == ["a", "b"]
    db.rollback()
    assert done == []


def test_work_after_the_commit_runs_once_and_finds_what_was_committed(db: Connection) -> None:
    found: list[tuple[str, list[str]]] = []

    def follow(tx: Tx, name: str) -> None:
        found.append((name, names(tx)))
        add(name)(tx)

    with db.writing(CONTEXT) as tx:
        add("a")(tx)
        for name in ("x", "y", "x"):
            tx.after_commit(follow, name)
    assert found == [("x", ["a"]), ("y", ["a", "x"])]
    assert stored(db) == ["a", "x", "y"]


def test_fault_rolls_back_only_its_own_call(db: Connection, group: Group) -> None:
    answers = group(add("a"), then_fail(add("b"), later("c")), add("d"), later("e"))
    assert [answer if isinstance(answer, str) else answer.code for answer in answers] == ["a", "conflict", "d", "e"]
    assert stored(db) == ["a", "d", "e"]


@pytest.mark.parametrize("given", [["a", "b"], ("a", "b"), [], ["é", None, 1, 2.5, ["c"]], [("a", b"\0")]])
def test_list_parameters_reach_sql_as_json(group: Group, given: Sequence[object]) -> None:
    [found] = group(lambda tx: tx.one("thing.echo", str, value=given))
    assert found == msgspec.json.encode(given).decode()


@pytest.mark.parametrize("given", ["a", 1, 2.5, b"\0a", None])
def test_scalar_parameters_reach_sql_unchanged(group: Group, given: object) -> None:
    [found] = group(lambda tx: tx.all("thing.echo", _same, value=given))
    assert found == [given]


def test_deferred_work_is_dropped_with_its_call(db: Connection, group: Group) -> None:
    group(later("a"), then_fail(later("b")), later("c"))
    assert stored(db) == ["a", "c"]


def test_failed_call_discards_its_flushed_work_and_reflushes_its_neighbours(db: Connection, group: Group) -> None:
    group(later("a"), then_fail(later("b"), names, later("c")), later("d"))
    assert stored(db) == ["a", "d"]


def test_failed_call_discards_work_flushed_twice(db: Connection, group: Group) -> None:
    group(later("a"), then_fail(names, later("b"), names), later("c"))
    assert stored(db) == ["a", "c"]


def test_flushed_work_of_a_successful_call_runs_once(db: Connection, group: Group) -> None:
    answers = group(later("a"), names, then_fail(later("b")), later("c"), names)
    assert answers[1] == ["a"]
    assert answers[4] == ["a", "c"]
    assert stored(db) == ["a", "c"]


def test_flush_gets_the_items_of_all_calls_once_in_order(group: Group) -> None:
    seen: list[list[int]] = []

    def note(_tx: Tx, items: list[int]) -> None:
        seen.append(items)

    group(*(lambda tx, number=number: tx.defer(note, number) for number in range(5)))
    assert seen == [[0, 1, 2, 3, 4]]


def test_flush_without_deferred_work_does_nothing(db: Connection) -> None:
    with db.writing() as tx:
        tx.flush_deferred()
        tx.flush_deferred()
    assert stored(db) == []


def test_deferred_work_sees_its_call_context(db: Connection) -> None:
    seen: list[CallContext] = []
    tx = db.begin(CONTEXT)
    for actor in ("one", "two"):
        db.call(tx, CallContext("things", "add", actor), catch_faults, lambda tx: seen.append(tx.call_context))
    db.rollback()
    assert seen == [CallContext("things", "add", "one"), CallContext("things", "add", "two")]


Step = tuple[str, str]
STEPS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from("abc")),
    st.tuples(st.just("later"), st.sampled_from("xyz")),
    st.just(("settle", "")),
)
CALLS = st.tuples(st.lists(STEPS, max_size=4), st.booleans())


def acting(steps: list[Step], fails: bool) -> Callable[[Tx], Any]:
    actions = {"add": add, "later": later, "settle": lambda _name: names}
    work = [actions[kind](name) for kind, name in steps]
    return then_fail(*work) if fails else lambda tx: [step(tx) for step in work]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(CALLS, max_size=5), max_size=3))
def test_table_holds_exactly_the_work_of_successful_calls(
    groups: list[list[tuple[list[Step], bool]]],
) -> None:
    """The expected multiset of names, extended by every call that succeeds."""
    db = things(Path(":memory:"))
    try:
        expected: list[str] = []
        for calls in groups:
            tx = db.begin(CONTEXT)
            for steps, fails in calls:
                answer = db.call(tx, CONTEXT, catch_faults, acting(steps, fails))
                assert isinstance(answer, Fault) is fails
                expected += [] if fails else [name for kind, name in steps if kind != "settle"]
            db.commit(tx)
        with db.writing() as tx:
            assert sorted(names(tx)) == sorted(expected)
    finally:
        db.close()


def test_writing_block_commits_or_rolls_back(db: Connection) -> None:
    with db.writing() as tx:
        add("kept")(tx)
    with pytest.raises(ZeroDivisionError), db.writing() as tx:
        _ = add("lost")(tx) and 1 / 0
    assert stored(db) == ["kept"]


def test_write_on_a_reader_is_a_storage_fault(tmp_path: Path, db: Connection, group: Group) -> None:
    group(add("a"))
    reader = Connection(tmp_path / "things.db", THING_CONTEXT, readonly=True)
    answer = catch_faults(reader.read, CONTEXT, lambda tx: tx.run("thing.rename", name="changed"))
    reader.close()
    assert isinstance(answer, Fault)
    assert (answer.code, answer.message) == ("storage", "Cannot write to storage.")
    assert stored(db) == ["a"]


def test_reader_is_readonly_by_file_mode_and_pragma(tmp_path: Path, db: Connection) -> None:
    reader = Connection(tmp_path / "things.db", THING_CONTEXT, readonly=True)
    found = [(each._db.readonly("main"), each.pragma("query_only")) for each in (db, reader)]
    reader.close()
    assert found == [(False, 0), (True, 1)]


def test_read_takes_its_snapshot_at_the_first_statement(tmp_path: Path, db: Connection, group: Group) -> None:
    reader = Connection(tmp_path / "things.db", THING_CONTEXT, readonly=True)

    def look(tx: Tx) -> list[list[str]]:
        group(add("before"))
        first = names(tx)
        group(add("meanwhile"))
        return [first, names(tx)]

    assert reader.read(CONTEXT, look) == [["before"], ["before"]]
    assert reader.read(CONTEXT, names) == ["before", "meanwhile"]
    reader.close()


def test_only_reads_of_committed_data_are_readonly(db: Connection) -> None:
    assert db.read(CONTEXT, lambda tx: tx.readonly) is True
    with db.writing() as tx:
        assert tx.readonly is False


def test_transaction_has_one_time_and_distinct_ids(db: Connection, clock: Clock) -> None:
    with db.writing() as tx:
        start = tx.now
        clock.move(hours=1)
        assert (tx.now, tx.new_id("mem"), tx.new_id("mem")) == (start, "mem_1", "mem_2")
    with db.writing() as tx:
        assert tx.now == "2026-01-02T04:04:05.678Z"


def test_rows_are_mapped_and_changes_counted(db: Connection, group: Group) -> None:
    group(add("a"), add("b"))
    with db.writing() as tx:
        assert tx.one("thing.names", str) == "a"
        assert tx.one("thing.count", int) == 2
        assert tx.all("thing.names", lambda name: (name,)) == [("a",), ("b",)]
        assert tx.run("thing.rename", name="c") == 2
        assert tx.one("thing.names", str) == "c"


def test_preloaded_embeddings_are_not_computed_again(db: Connection) -> None:
    embedder = RecordingEmbedder()
    db.context = StoreContext(STATEMENTS, embedder)  # pyrefly: ignore[bad-argument-type]
    tx = Tx(db, CONTEXT, readonly=True)
    ready = Embedding(b"ready", 0.5, b"")
    tx.preload({"a": ready})
    assert tx.embed(["b", "a"]) == [Embedding(b"b", 1.0, b""), ready]
    assert tx.embed(["a", "b"]) == [ready, Embedding(b"b", 1.0, b"")]
    assert embedder.embedded == ["b"]


def test_embed_is_disabled_without_a_model(db: Connection) -> None:
    with db.writing() as tx, pytest.raises(Fault) as raised:
        tx.embed(["a"])
    assert raised.value.code == "disabled"


def test_full_disk_is_a_storage_fault_and_the_next_call_works(db: Connection, group: Group) -> None:
    group(add("a"))
    pages = db.pragma("page_count")
    db.pragma("max_page_count", pages)
    answer = catch_faults(group, add("b" * 50_000))
    db.rollback()
    assert isinstance(answer, Fault)
    assert (answer.code, answer.message) == ("storage", "Cannot write to storage, insufficient disk space.")
    db.pragma("max_page_count", pages + 100)
    group(add("c"))
    assert stored(db) == ["a", "c"]


def test_full_disk_fails_the_neighbours_and_leaves_nothing(db: Connection, group: Group) -> None:
    db.pragma("max_page_count", db.pragma("page_count"))
    answer = catch_faults(group, add("a"), add("b" * 50_000), add("c"))
    db.rollback()
    assert isinstance(answer, Fault)
    assert answer.code == "storage"
    assert stored(db) == []


def test_extension_loading_is_off_after_the_vector_functions_are_loaded(db: Connection) -> None:
    db.load_vectors()
    db.load_vectors()
    assert db.values("SELECT length(vec_int8(x'0102'))") == [(2,)]
    with db.writing() as tx, pytest.raises(apsw.SQLError, match="not authorized"):
        tx.one("thing.load", str)


def test_double_quoted_name_is_never_a_string(db: Connection) -> None:
    with db.writing() as tx, pytest.raises(apsw.SQLError, match="no such column"):
        tx.one("thing.quoted", str)


def test_tokenize_uses_the_tokenizer_of_the_index(db: Connection) -> None:
    assert db.read(CONTEXT, lambda tx: tx.tokenize("Running Él 日本")) == [
        (0, 7, "run"),
        (8, 11, "el"),
        (12, 18, "日本"),
    ]


def test_passive_checkpoint_does_not_wait(tmp_path: Path, db: Connection, group: Group) -> None:
    group(add("a"))
    other = things(tmp_path / "things.db")
    other.begin(CONTEXT)
    db.checkpoint()
    other.rollback()
    other.close()


def test_wal_pages_are_updated_by_every_commit(db: Connection, group: Group) -> None:
    before = db.wal_pages
    group(add("a"))
    assert db.wal_pages > before


def test_backup_is_a_whole_database_and_reports_progress(tmp_path: Path, db: Connection, group: Group) -> None:
    group(*(add(f"{number}" * 3000) for number in range(10)))
    reports: list[tuple[int, int]] = []
    db.backup(tmp_path / "copy.db", lambda done, total: reports.append((done, total)))
    assert reports
    assert reports[-1][0] == reports[-1][1]
    copy = Connection(tmp_path / "copy.db", THING_CONTEXT, readonly=True)
    assert copy.read(CONTEXT, names) == stored(db)
    copy.close()
    assert [path.name for path in sorted(tmp_path.iterdir()) if path.name.startswith("copy")] == ["copy.db"]


def test_close_is_idempotent(tmp_path: Path) -> None:
    db = things(tmp_path / "other.db")
    db.close()
    db.close()


def io_error(extended: int) -> apsw.IOError:
    error: Any = apsw.IOError()
    error.extendedresult = extended
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (apsw.BusyError(), "busy"),
        (apsw.LockedError(), "busy"),
        (apsw.InterruptError(), "busy"),
        (apsw.NoMemError(), "busy"),
        (MemoryError(), "busy"),
        (apsw.FullError(), "storage"),
        (apsw.IOError(), "storage"),
        (io_error(apsw.SQLITE_IOERR_SHMSIZE), "storage"),
        (io_error(apsw.SQLITE_IOERR_SHMMAP), "busy"),
        (io_error(apsw.SQLITE_IOERR_NOMEM), "busy"),
        (apsw.ReadOnlyError(), "storage"),
        (apsw.CantOpenError(), "storage"),
        (apsw.CorruptError(), "storage"),
        (apsw.NotADBError(), "storage"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "damaged"), "storage"),
        (apsw.TooBigError(), "invalid"),
        (OverflowError(), "invalid"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogate"), "invalid"),
        (apsw.SQLError(), None),
        (apsw.ConstraintError(), None),
        (ValueError(), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_engine_errors_become_faults_and_bugs_do_not(error: Exception, code: str | None) -> None:
    found = as_fault(error)
    assert (found and found.code) == code


@pytest.mark.parametrize("value", ["\ud800", 2**63])
def test_value_that_sqlite_cannot_hold_is_invalid(group: Group, db: Connection, value: Any) -> None:
    (answer,) = group(add(value))
    assert answer.code == "invalid"
    assert stored(db) == []


def test_sqlite_is_new_enough() -> None:
    assert sqlite_version() >= 3_051_003


def test_durable_writer_is_synchronous_full(tmp_path: Path) -> None:
    full = Connection(tmp_path / "things.db", THING_CONTEXT, readonly=False)
    normal = Connection(tmp_path / "things.db", THING_CONTEXT, readonly=False, durable=False)
    assert (full.pragma("synchronous"), normal.pragma("synchronous")) == (2, 1)
    full.close()
    normal.close()


def test_only_readers_map_the_file(tmp_path: Path) -> None:
    """A failed write through a memory map is a signal instead of an error, so only readers map the file."""
    file = tmp_path / "mapped.db"
    writer = Connection(file, StoreContext({}), readonly=False)
    writer.script("CREATE TABLE t (a)")
    reader = Connection(file, StoreContext({}), readonly=True)
    assert writer.pragma("mmap_size") == 0
    assert reader.pragma("mmap_size") > 1 << 20
    reader.close()
    writer.close()


@pytest.mark.parametrize("durable", [True, False])
def test_a_commit_empties_the_cache_of_the_drive_on_macos(durable: bool, tmp_path: Path) -> None:
    connection = Connection(tmp_path / "a.db", THING_CONTEXT, readonly=False, durable=durable)
    found = [connection.pragma(name) for name in ("synchronous", "fullfsync", "checkpoint_fullfsync")]
    connection.close()
    assert found == ([2, 1, 1] if durable else [1, 0, 1])


def test_whole_tables_are_of_one_snapshot(db: Connection, tmp_path: Path) -> None:
    reader = Connection(tmp_path / "things.db", THING_CONTEXT, readonly=True)

    def read_beside_a_writer(tx: Tx) -> list[tuple[Any, ...]]:
        columns = tx.tables.columns("thing")
        before = [*tx.tables.rows("thing", columns)]
        with db.writing(CONTEXT) as writing:
            add("late")(writing)
        assert [*tx.tables.rows("thing", columns)] == before
        return before

    try:
        before = reader.read(CONTEXT, read_beside_a_writer)
        assert len(reader.read(CONTEXT, names)) == len(before) + 1
    finally:
        reader.close()

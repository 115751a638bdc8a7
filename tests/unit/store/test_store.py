"""Answers follow the commit, calls share commits but not failures, and queues are bounded."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import apsw
import pytest

from kernel.calls.dispatch import catch_faults
from kernel.core.errors import Fault
from kernel.embed.model import Embedding
from kernel.engines.sqlite import database
from kernel.engines.sqlite.connection import Connection
from kernel.store.context import CallContext, StoreContext
from kernel.store.queue import Job, Merge
from kernel.store.store import Pools, Store
from kernel.store.transaction import Tx
from tests.unit.store_fixtures import STATEMENTS, add, flush, later, names, thing_store, things

CONTEXT = CallContext("things", "add", "tester")
TIMEOUT_SECONDS = 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    running = thing_store(file)
    running.start()
    yield running
    running.close()


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each commit."""
    counted: list[None] = []
    commit = Connection.commit

    def counting(db: Connection, tx: Tx) -> None:
        commit(db, tx)
        counted.append(None)

    monkeypatch.setattr(Connection, "commit", counting)
    return counted


@contextmanager
def writer_busy(store: Store) -> Iterator[None]:
    """Keeps the writer busy until the block ends."""
    begun, ended = threading.Event(), threading.Event()

    def work(_tx: Tx) -> None:
        begun.set()
        assert ended.wait(TIMEOUT_SECONDS)

    holder = threading.Thread(target=store.write_sync, args=(work,))
    holder.start()
    assert begun.wait(TIMEOUT_SECONDS)
    try:
        yield
    finally:
        ended.set()
        holder.join()


@contextmanager
def readers_busy(store: Store, count: int) -> Iterator[None]:
    """Keeps `count` readers busy until the block ends."""
    ended, begun = threading.Event(), threading.Semaphore(0)

    def work(_tx: Tx) -> None:
        begun.release()
        assert ended.wait(TIMEOUT_SECONDS)

    holders = [threading.Thread(target=store.read_sync, args=(work, CONTEXT)) for _ in range(count)]
    for holder in holders:
        holder.start()
    for _ in holders:
        assert begun.acquire(timeout=TIMEOUT_SECONDS)
    try:
        yield
    finally:
        ended.set()
        for holder in holders:
            holder.join()


@contextmanager
def write_locked(file: Path) -> Iterator[Connection]:
    """Holds the write lock of the file on another connection until the block ends."""
    other = things(file)
    other.begin(CONTEXT)
    try:
        yield other
    finally:
        other.rollback()
        other.close()


async def grouped(store: Store, *calls: Callable[[Tx], Any], exclusive: bool = False) -> list[Any]:
    """The answers of calls that were queued while the writer was busy, so that they share a group."""
    with writer_busy(store):
        futures = [store.write(work, CONTEXT, exclusive=exclusive)[1] for work in calls]
    return await asyncio.gather(*futures)


def stored(store: Store) -> list[str]:
    return store.read_sync(names)


def codes(answers: list[Any]) -> list[Any]:
    return [answer.code if isinstance(answer, Fault) else answer for answer in answers]


def broken(name: str) -> Callable[[Tx], str]:
    """A call with a bug in its deferred work, which runs when the group commits."""

    def work(tx: Tx) -> str:
        tx.defer(exploding, name)
        return name

    return work


def exploding(_tx: Tx, items: list[str]) -> None:
    raise ZeroDivisionError(items)


def refusing(_tx: Tx, items: list[str]) -> None:
    raise OverflowError(items)


def test_answered_write_is_visible_to_every_reader(store: Store) -> None:
    async def write_and_read() -> None:
        for number in range(20):
            name = await store.write(add(f"{number}"), CONTEXT)[1]
            assert name in store.read_now(names, CONTEXT)  # pyrefly: ignore[not-iterable]
            assert name in await store.read(names, CONTEXT)[1]

    asyncio.run(write_and_read())


def test_write_is_answered_after_the_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    commit = Connection.commit

    def recording(db: Connection, tx: Tx) -> None:
        events.append("committing")
        commit(db, tx)
        events.append("committed")

    monkeypatch.setattr(Connection, "commit", recording)

    def write(work: Callable[[Tx], Any]) -> None:
        store.write_sync(work)
        events.append("answered")

    write(add("a"))
    assert events == ["committing", "committed", "answered"]


def test_calls_are_answered_after_the_work_that_follows_their_commit(store: Store, commits: list[None]) -> None:
    seen: list[list[str]] = []

    def follow(tx: Tx) -> None:
        seen.append(names(tx))
        add("after")(tx)

    def followed(name: str) -> Callable[[Tx], str]:
        def work(tx: Tx) -> str:
            tx.after_commit(follow)
            return add(name)(tx)

        return work

    assert asyncio.run(grouped(store, followed("a"), add("b"), followed("c"))) == ["a", "b", "c"]
    assert seen == [["a", "b", "c"]]
    assert stored(store) == ["a", "b", "c", "after"]
    assert len(commits) == 3  # of the call that kept the writer busy, of the group, and of the work after it


def test_a_call_is_told_where_the_work_after_its_commit_fails_and_stays_committed(store: Store) -> None:
    def follow(tx: Tx) -> None:
        add("lost")(tx)
        raise Fault("storage", "Not now.")

    def work(tx: Tx) -> None:
        tx.after_commit(follow)
        add("a")(tx)

    with pytest.raises(Fault, match=r"Not now\."):
        store.write_sync(work)
    assert store.write_sync(add("b")) == "b"
    assert stored(store) == ["a", "b"]


def test_calls_queued_together_share_one_commit(store: Store, commits: list[None]) -> None:
    answers = asyncio.run(grouped(store, *(add(f"{number}") for number in range(100))))
    assert answers == [f"{number}" for number in range(100)]
    assert stored(store) == answers
    assert len(commits) == 2


def test_group_is_limited(file: Path, commits: list[None]) -> None:
    store = thing_store(file, group_limit=10)
    store.start()
    asyncio.run(grouped(store, *(add(f"{number}") for number in range(25))))
    store.close()
    assert len(commits) == 4


def test_exclusive_call_has_its_own_transaction(store: Store, commits: list[None]) -> None:
    async def queue() -> None:
        with writer_busy(store):
            futures = [store.write(add(f"{number}"), CONTEXT, exclusive=number in {1, 2})[1] for number in range(5)]
        await asyncio.gather(*futures)

    asyncio.run(queue())
    assert stored(store) == ["0", "1", "2", "3", "4"]
    assert len(commits) == 5


def test_many_threads_share_commits_and_lose_nothing(store: Store, commits: list[None]) -> None:
    def write(number: int) -> None:
        for turn in range(20):
            store.write_sync(later(f"{number}-{turn}"))

    run_all(*(lambda number=number: write(number) for number in range(16)))
    assert sorted(stored(store)) == sorted(f"{number}-{turn}" for number in range(16) for turn in range(20))
    assert len(commits) < 320


def run_all(*targets: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_fault_fails_only_its_own_call(store: Store) -> None:
    def fail(tx: Tx) -> None:
        add("lost")(tx)
        raise Fault("conflict", "No.")

    def bug(tx: Tx) -> None:
        later("lost")(tx)
        _ = 1 / 0

    answers = asyncio.run(grouped(store, add("a"), fail, later("b"), bug, add("c")))
    assert codes(answers) == ["a", "conflict", "b", "internal", "c"]
    assert sorted(stored(store)) == ["a", "b", "c"]


def test_bug_in_deferred_work_fails_only_its_own_call(store: Store) -> None:
    answers = asyncio.run(grouped(store, add("a"), later("b"), broken("lost"), later("c")))
    assert codes(answers) == ["a", "b", "internal", "c"]
    assert sorted(stored(store)) == ["a", "b", "c"]


def test_engine_error_in_deferred_work_fails_only_its_own_call(store: Store) -> None:
    answers = asyncio.run(grouped(store, add("a"), lambda tx: tx.defer(refusing, "lost"), later("c")))
    assert codes(answers) == ["a", "invalid", "c"]
    assert sorted(stored(store)) == ["a", "c"]


def test_mergeable_neighbours_run_as_one_batch_with_separate_answers(store: Store) -> None:
    seen: list[list[str]] = []

    def many(tx: Tx, requests: Sequence[str]) -> list[Any]:
        seen.append([*requests])
        flush(tx, [name for name in requests if name != "no"])
        return [Fault("conflict", "No.") if name == "no" else name.upper() for name in requests]

    async def queue() -> list[Any]:
        with writer_busy(store):
            futures = [
                store.write(add(name), who, merge=Merge(many, name) if merged else None)[1]
                for name, who, merged in (
                    ("a", CONTEXT, True),
                    ("no", CONTEXT, True),
                    ("b", CONTEXT, True),
                    ("c", CONTEXT, False),
                    ("d", CONTEXT, True),
                    ("e", CONTEXT._replace(actor="another"), True),
                )
            ]
        return codes(await asyncio.gather(*futures))

    assert asyncio.run(queue()) == ["A", "conflict", "B", "c", "d", "e"]
    assert seen == [["a", "no", "b"]]
    assert stored(store) == ["a", "b", "c", "d", "e"]


def test_calls_run_one_by_one_after_a_bug_in_their_batch(store: Store) -> None:
    def many(tx: Tx, requests: Sequence[str]) -> list[Any]:
        flush(tx, requests)
        raise ZeroDivisionError

    async def queue() -> list[Any]:
        with writer_busy(store):
            futures = [store.write(add(name), CONTEXT, merge=Merge(many, name))[1] for name in "abc"]
        return await asyncio.gather(*futures)

    assert asyncio.run(queue()) == ["a", "b", "c"]
    assert stored(store) == ["a", "b", "c"]


def test_texts_are_embedded_once_before_the_lock_is_taken(file: Path) -> None:
    asked: list[tuple[list[str], bool]] = []

    class Watching:
        def embed(self, texts: list[str]) -> list[Embedding]:
            other = things(file)
            asked.append((texts, other.begin(CONTEXT) is not None))
            other.rollback()
            other.close()
            return [Embedding(text.encode(), 1.0, b"") for text in texts]

    store = thing_store(file, StoreContext(STATEMENTS, Watching()))  # pyrefly: ignore[bad-argument-type]
    store.start()

    async def queue() -> list[Any]:
        with writer_busy(store):
            futures = [store.write(lambda tx, text=text: tx.embed([text]), CONTEXT, texts=[text])[1] for text in "ab"]
        return await asyncio.gather(*futures)

    assert asyncio.run(queue()) == [[Embedding(b"a", 1.0, b"")], [Embedding(b"b", 1.0, b"")]]
    assert asked == [(["a", "b"], True)]
    store.close()


def test_a_short_call_waits_for_one_step_of_another_callers_long_text(file: Path) -> None:
    events: list[str] = []
    begun, queued = threading.Event(), threading.Event()

    def first(text: str) -> str:
        events.append("first step")
        begun.set()
        assert queued.wait(TIMEOUT_SECONDS)
        return text[:2]

    def second(text: str) -> int:
        events.append("second step")
        return len(text)

    def short(tx: Tx) -> str:
        events.append("short")
        return add("short")(tx)

    def long(tx: Tx) -> tuple[str, int, str]:
        events.append("long")
        return tx.derived(first, text), tx.derived(second, text), add("long")(tx)

    text = "long " * 10_000
    store = thing_store(file, StoreContext(STATEMENTS, derived=(first, second)))
    store.start()
    other = CONTEXT._replace(actor="other")

    async def queue() -> list[Any]:
        answers = [asyncio.get_running_loop().create_future() for _ in range(3)]
        done = [lambda job, answer=answer: answer.set_result(job.answer) for answer in answers]
        store.begin_write(long, CONTEXT, done[0], texts=[text], size=len(text))
        assert begun.wait(TIMEOUT_SECONDS)
        store.begin_write(add("next"), CONTEXT, done[1])
        store.begin_write(short, other, done[2])
        queued.set()
        return await asyncio.gather(*answers)

    assert asyncio.run(queue()) == [("lo", len(text), "long"), "next", "short"]
    assert events == ["first step", "short", "second step", "long"]
    assert stored(store) == ["short", "long", "next"]
    store.close()


def test_writer_reconnects_after_a_storage_error(store: Store) -> None:
    used: list[object] = []

    def fail_disk(_tx: Tx, _items: list[str]) -> None:
        raise apsw.IOError("the disk")

    def work(tx: Tx) -> None:
        used.append(tx._engine)
        tx.defer(fail_disk, "a")

    with pytest.raises(Fault, match=r"Cannot write to storage\."):
        store.write_sync(work)
    store.write_sync(lambda tx: used.append(tx._engine))
    assert used[0] is not used[1]
    assert store.write_sync(add("a")) == "a"
    assert stored(store) == ["a"]


def test_reader_reconnects_after_a_storage_error(file: Path) -> None:
    store = thing_store(file, readers=1)
    store.start()
    used: list[object] = []

    def fail_disk(tx: Tx) -> None:
        used.append(tx._engine)
        raise apsw.IOError("the disk")

    def look(tx: Tx) -> None:
        used.append(tx._engine)

    with pytest.raises(Fault, match=r"Cannot write to storage\."):
        store.read_sync(fail_disk)
    for _ in range(2):
        store.read_sync(look)
    assert used[0] is not used[1] is used[2]
    assert codes([store.read_now(fail_disk, CONTEXT)]) == ["storage"]
    for _ in range(2):
        store.read_now(look, CONTEXT)
    assert used[3] is not used[4] is used[5]
    store.close()


def test_full_disk_fails_the_group_and_the_next_one_works(store: Store) -> None:
    def fill(tx: Tx) -> None:
        db = cast("Connection", tx._engine)
        db.pragma("max_page_count", db.pragma("page_count"))
        add("x" * 100_000)(tx)

    answers = asyncio.run(grouped(store, add("a"), fill, add("b")))
    assert codes(answers) == ["storage", "storage", "storage"]
    assert store.write_sync(add("c")) == "c"
    assert stored(store) == ["c"]


def test_calls_that_have_waited_too_long_are_refused(file: Path) -> None:
    store = thing_store(file, max_wait=0.1)
    store.start()

    async def crowd() -> list[Any]:
        with writer_busy(store), readers_busy(store, 2):
            waiting = [store.write(add("late"), CONTEXT)[1], store.read(names, CONTEXT)[1]]
            await asyncio.sleep(0.2)
            early = [store.write(add("early"), CONTEXT)[1], store.read(names, CONTEXT)[1]]
        return await asyncio.gather(*waiting, *early)

    answers = asyncio.run(crowd())
    assert codes(answers[:3]) == ["busy", "busy", "early"]
    assert stored(store) == ["early"]
    store.close()


@pytest.mark.parametrize(("other", "most"), [("a/another name of the same key", 2), ("b", 1)])
def test_a_caller_has_half_of_the_readers_while_another_calls(
    store: Store, other: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel.store.queue._LATELY_SECONDS", TIMEOUT_SECONDS)
    running, counts, lock = 0, list[int](), threading.Lock()

    def slow(_tx: Tx) -> None:
        nonlocal running
        with lock:
            running += 1
            counts.append(running)
        time.sleep(0.03)
        with lock:
            running -= 1

    async def calls() -> None:
        store.read_now(lambda _tx: None, CallContext(actor="a"))
        store.read_now(lambda _tx: None, CallContext(actor=other))  # which never waits in the queue
        await asyncio.gather(*[store.read(slow, CallContext(actor="a"))[1] for _ in range(4)])

    asyncio.run(calls())
    assert max(counts) == most


def test_call_cancelled_in_the_queue_never_runs(store: Store) -> None:
    async def cancel_half() -> None:
        ran: list[str] = []
        with writer_busy(store), readers_busy(store, 2):
            writes = [store.write(add(f"{number}"), CONTEXT) for number in range(4)]
            reads = [store.read(lambda _tx, number=number: ran.append(f"{number}"), CONTEXT) for number in range(4)]
            for job, _ in [*writes[::2], *reads[::2]]:
                job.cancel()
        await asyncio.gather(*(future for _, future in [*writes[1::2], *reads[1::2]]))
        assert sorted(ran) == ["1", "3"]

    asyncio.run(cancel_half())
    assert stored(store) == ["1", "3"]


def test_running_read_is_interrupted_and_its_reader_continues(file: Path) -> None:
    store = thing_store(file, readers=1)
    store.start()
    begun = threading.Event()

    def endless(tx: Tx) -> None:
        begun.set()
        tx.one("thing.forever", int)

    async def cancel() -> Any:
        job, future = store.read(endless, CONTEXT)
        assert await asyncio.to_thread(begun.wait, TIMEOUT_SECONDS)
        while not future.done():
            job.cancel()
            await asyncio.sleep(0.001)
        return future.result()

    answer = asyncio.run(cancel())
    assert (answer.code, answer.message) == ("busy", "The call was cancelled.")
    assert store.write_sync(add("a")) == "a"
    assert stored(store) == ["a"]
    store.close()


class Caller:
    """A caller that holds its job, to cancel it."""

    def __init__(self) -> None:
        self.answered = asyncio.Event()
        self.job: Job | None = None

    def on_answer(self, _job: Job) -> None:
        self.answered.set()


@pytest.mark.slow
def test_answered_call_leaves_no_reference_cycle(store: Store) -> None:
    async def ask() -> weakref.ref[Caller]:
        caller = Caller()
        caller.job = store.begin_write(add("a"), CONTEXT, caller.on_answer)
        await caller.answered.wait()
        return weakref.ref(caller)

    gc.disable()
    try:
        assert asyncio.run(ask())() is None
    finally:
        gc.enable()


def test_write_cancelled_alone_in_the_queue_is_no_error(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    job = Job(add("a"), CallContext(), lambda _job: None)
    job.cancel()
    store._writes.put(job)
    while store._writes.waiting:
        time.sleep(0.001)
    store.write_sync(add("b"))
    assert (store.read_sync(names), caplog.records) == (["b"], [])


def test_cancelled_future_does_not_disturb_later_answers(store: Store) -> None:
    async def cancel() -> list[str]:
        with writer_busy(store):
            _, future = store.write(add("late"), CONTEXT)
            future.cancel()
            after = store.write(add("after"), CONTEXT)[1]
        assert await after == "after"
        return await store.read(names, CONTEXT)[1]

    assert asyncio.run(cancel()) == ["late", "after"]


def test_two_stores_on_one_file_lose_nothing(file: Path) -> None:
    stores = [thing_store(file), thing_store(file)]
    for store in stores:
        store.start()

    def write(number: int) -> None:
        for turn in range(15):
            stores[number % 2].write_sync(later(f"{number}-{turn}"))

    run_all(*(lambda number=number: write(number) for number in range(8)))
    wanted = sorted(f"{number}-{turn}" for number in range(8) for turn in range(15))
    assert [sorted(stored(store)) for store in stores] == [wanted, wanted]
    for store in stores:
        store.close()


def test_locked_file_makes_writes_busy_and_reads_answer(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.engines.sqlite.connection.BUSY_MILLISECONDS", 50)
    store = thing_store(file)
    store.start()
    store.write_sync(add("before"))
    with write_locked(file):
        answers = asyncio.run(concurrent(store, add("a"), later("b")))
        assert [(answer.code, answer.message) for answer in answers] == [("busy", "The store is busy, try again.")] * 2
        assert stored(store) == ["before"]
    assert store.write_sync(add("after")) == "after"
    assert stored(store) == ["before", "after"]
    store.close()


async def concurrent(store: Store, *calls: Callable[[Tx], Any]) -> list[Any]:
    return await asyncio.gather(*(store.write(work, CONTEXT)[1] for work in calls))


def test_write_waits_for_a_brief_lock_of_another_process(store: Store, file: Path) -> None:
    with write_locked(file) as other:
        waiting = threading.Thread(target=store.write_sync, args=(add("waiting"),))
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        other.rollback()
        waiting.join(TIMEOUT_SECONDS)
    assert stored(store) == ["waiting"]


@pytest.mark.slow
def test_write_that_has_waited_for_long_begins_soon_after_the_lock_is_free(store: Store, file: Path) -> None:
    waits: list[float] = []

    def write() -> None:
        store.write_sync(lambda _tx: waits.append(time.monotonic() - free))

    for _ in range(3):  # a busy machine may delay one or the other
        with write_locked(file) as other:
            waiting = threading.Thread(target=write)
            waiting.start()
            waiting.join(0.24)
            free = time.monotonic()
            other.rollback()
            waiting.join(TIMEOUT_SECONDS)
    assert min(waits) < 0.05


@pytest.mark.slow
def test_close_finishes_queued_calls_and_truncates_the_wal(file: Path) -> None:
    store = thing_store(file)
    store.start()
    done: list[str] = []
    with writer_busy(store):
        writers = [
            threading.Thread(target=lambda name=name: done.append(store.write_sync(add(name)))) for name in "abcdef"
        ]
        for writer in writers:
            writer.start()
        until(lambda: store._writes.waiting == 6)
        witness = things(file)
        closing = threading.Thread(target=store.close)
        closing.start()
    for thread in (*writers, closing):
        thread.join(TIMEOUT_SECONDS)
    assert sorted(done) == list("abcdef")
    assert file.with_name("things.db-wal").stat().st_size == 0
    assert sorted(witness.read(CONTEXT, names)) == list("abcdef")
    witness.close()
    assert [path.name for path in file.parent.iterdir()] == ["things.db"]


def until(met: Callable[[], bool]) -> None:
    """Waits for a condition that other threads make true."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_closed_store_refuses_calls(file: Path) -> None:
    store = thing_store(file)
    store.start()
    store.close()
    store.close()
    for call in (lambda: store.write_sync(add("a")), lambda: store.read_sync(names)):
        with pytest.raises(Fault, match="busy"):
            call()


def test_unopenable_file_is_a_fault_until_it_opens(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Connection:
        raise apsw.CantOpenError("no")

    store = thing_store(file)
    with monkeypatch.context() as patch:
        patch.setattr(database, "Connection", type("Refusing", (Connection,), {"__init__": refuse}))
        store.start()
        answers = [
            catch_faults(store.write_sync, add("a")),
            catch_faults(store.read_sync, names),
            catch_faults(store.read_now, names, CONTEXT),
        ]
        assert codes(answers) == ["storage", "storage", "storage"]
    assert store.write_sync(add("b")) == "b"
    assert stored(store) == ["b"]
    assert store.read_now(names, CONTEXT) == ["b"]
    store.close()


def _cached_pages(store: Store) -> int:
    """The bytes of pages that a reader of the store keeps."""
    reader: Any = store._readers[0]
    return reader._db.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]


def test_stores_used_least_recently_give_up_pages_and_then_connections_while_memory_is_short(tmp_path: Path) -> None:
    short: list[bool] = []
    pools = Pools(2, 0.0, lambda: bool(short and short.pop()), most_memory=0)
    stores = [thing_store(tmp_path / f"{number}.db", pools=pools) for number in range(3)]
    for store in stores:
        store.start()
        store.write_sync(add("before"))
        assert stored(store) == ["before"]
    pages, cached = apsw.memory_used(), _cached_pages(stores[0])
    for times, closed in ((2, [(True, False), (True, False), (False, False)]), (1, [(True, True), (True, False)])):
        short[:] = [True] * times
        assert stored(stores[2]) == ["before"]
        assert [(store._writer is None, store._readers == []) for store in stores][: len(closed)] == closed
        assert apsw.memory_used() < pages
        pages = apsw.memory_used()
        assert times == 1 or _cached_pages(stores[0]) < cached
    assert stores[0].write_sync(add("after")) == "after"
    assert [stored(store) for store in stores] == [["before", "after"], ["before"], ["before"]]
    for store in stores:
        store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.db", "1.db", "2.db"]

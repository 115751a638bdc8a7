"""A store: calls that write commit in groups, one after another; calls that read run beside them."""

import asyncio
import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from kernel.core.errors import NO_MEMORY, CatchFaults, Fault
from kernel.core.times import later
from kernel.embed.model import Embedding
from kernel.store import audit
from kernel.store.context import CallContext, StoreContext
from kernel.store.engine import CommandConnection, Database, ReadConnection, WriteConnection
from kernel.store.long_work import MORE, Slices
from kernel.store.queue import (
    GROUP_BYTES,
    Callers,
    CallQueue,
    Deliver,
    Job,
    Merge,
    Texts,
    ThreadPool,
    Work,
    answer_all,
    commit_groups,
    current_stages,
    discard,
    end_stage,
    fail_all,
    interrupt_lock,
    merge_runs,
    wait,
)
from kernel.store.transaction import Tx

_PREPARED = object()
_EXCLUSIVE_BUDGET = 60  # times the usual cost limit, for a call with a transaction of its own
_UNDO_BYTES = 64 << 20  # a call of which one statement changed more cannot be undone


class GroupRunner:
    """Runs groups on the connection of the writer; with `undo_hours` the changes of undoable calls are kept."""

    def __init__(self, context: StoreContext, catch_faults: CatchFaults, undo_hours: int) -> None:
        self._context = context
        self._catch_faults = catch_faults
        self._undo_hours = undo_hours

    def run(self, db: WriteConnection, group: Sequence[Job]) -> Sequence[Work]:
        """Runs a group and commits it; returns the work that follows the commit."""
        vectors = self._embedded([text for job in group if job.preparing is None for text in self._texts(job)])
        if vectors:
            end_stage(group, "embed")
        tx = db.begin(group[0].context, large=group[0].exclusive)
        tx.preload(vectors)
        tx.preload(group[0].vectors, group[0].derived)
        for run in (group,) if len(group) == 1 else merge_runs(group):
            if len(run) == 1 or not self._run_batch(db, tx, run):
                for job in run:
                    job.answer = self.run_audited(db, tx, job) if job.audited else self._call(db, tx, job)
            end_stage(run, "work")
        db.commit(tx)
        end_stage(group, "commit")
        return tx.work_after_commit

    def _call(self, db: WriteConnection, tx: Tx, job: Job) -> Any:
        return db.call(tx, job.context, self._catch_faults, job.work, _EXCLUSIVE_BUDGET if job.exclusive else 1)

    def run_audited(self, db: WriteConnection, tx: Tx, job: Job) -> Any:
        """Runs one call and records it in the audit if it changed anything."""
        undoable, undo = job.undoable and self._undo_hours > 0, None
        if undoable:
            audit.expire_undo(tx, later(tx.now, -timedelta(hours=self._undo_hours)))
        before = db.total_changes()
        if undoable:
            answer, undo = self._undoable_call(db, tx, job)
        else:
            answer = self._call(db, tx, job)
        if isinstance(answer, Fault):
            return answer
        has_changes = db.total_changes() > before or tx.has_deferred
        if answer is MORE or job.earlier is not None:
            job.earlier = job.earlier or audit.EarlierSlices()
            job.earlier.record(tx, undo, changed=has_changes, more=answer is MORE)
        elif has_changes:
            audit.record(tx, call=undo.call if undo else "")
        return answer

    def _undoable_call(self, db: WriteConnection, tx: Tx, job: Job) -> tuple[Any, audit.UndoRecorder]:
        changes = db.record_changes(_UNDO_BYTES)
        try:
            recorder = audit.UndoRecorder(tx, changes, job.earlier)
            answer = self._call(db, tx, job)
            recorder.finish(keep=not isinstance(answer, Fault))
            return answer, recorder
        finally:
            tx.after_slice = None
            changes.close()

    def prepare(self, job: Job) -> Iterator[None]:
        """Yield after each step of the work on long texts that needs no transaction."""
        texts = self._texts(job)
        job.vectors = self._embedded(texts)
        job.derived = derived = dict[tuple[Callable[[str], object], str], object]()
        for function in self._context.derived:
            for text in texts:
                derived[function, text] = function(text)
                yield

    def _embedded(self, texts: Sequence[str]) -> dict[str, Embedding]:
        """Return embeddings, computed before the lock is taken.

        A model that cannot be read is left to the calls: each of them fails, or does without.
        """
        embedder = self._context.embedder
        if embedder is not None and texts:
            with suppress(OSError, ValueError):
                return dict(zip(texts, embedder.embed(texts), strict=True))
        return {}

    def _texts(self, job: Job) -> Sequence[str]:
        """Return the texts that a call will embed; finding them takes time that the event loop must not spend."""
        texts = self._catch_faults(job.texts) if callable(job.texts) else job.texts
        if not isinstance(texts, Fault):
            return texts
        job.work, job.merge = partial(_refuse, texts), None
        return ()

    def _run_batch(self, db: WriteConnection, tx: Tx, run: Sequence[Job]) -> bool:
        """Runs merged calls as one; False, with nothing changed, if each of them must run by itself."""
        requests = [job.merge.request for job in run if job.merge]
        batch = run[0].merge and run[0].merge.batch
        answers = db.call(tx, run[0].context, self._catch_faults, lambda tx: batch(tx, requests) if batch else [])
        if isinstance(answers, Fault):
            return False
        for job, answer in zip(run, answers, strict=True):
            job.answer = answer
        if run[0].audited:
            audit.record(tx)
        return True


def _refuse(fault: Fault, _tx: Tx) -> None:
    raise fault


R = TypeVar("R")

GROUP_LIMIT = 256
MAX_WAIT_SECONDS = 10.0
_POOL_FACTOR = 4  # threads that read over the readers of one caller: tenants do not wait for the slow reads of one
_WRITERS = 4  # tenants that commit at once; they wait for the disk most of the time
_GROUP_BUCKETS = 15  # powers of two up to the largest group that can be configured
_COMPLETED_LATER = "The change is recorded, and the next call completes it."
_PARTLY_DONE = "A part of the call is done."
_UNDO = "Call again, or take that part back by `quipu undo`."


def _must_reopen(answer: object) -> bool:
    """Return whether the connection that gave this answer is no longer usable: without memory FTS5 takes its index for
    damaged from then on.
    """
    return isinstance(answer, Fault) and (answer.code == "storage" or answer.message == NO_MEMORY)


def _mention_committed_slices(job: Job) -> None:
    """Add to the error of a call that some of its slices are committed, and the undo if it was recorded."""
    fault, earlier = job.answer, job.earlier
    if isinstance(fault, Fault) and earlier is not None and earlier.is_partial:
        remedy = _UNDO if earlier.call else "Call again."
        job.answer = Fault(fault.code, f"{fault.message} {_PARTLY_DONE} {remedy}", fault.label, fault.context)


def _future() -> tuple[asyncio.Future[Any], Deliver]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def deliver(job: Job) -> None:
        if not future.done():
            future.set_result(job.answer)

    return future, deliver


class Pools:
    """The threads that read and write for all stores of a process; while the connections of all take too much memory,
    those used least recently give up their pages, and then are closed. Without `memory_used` they take none.

    A caller of each store has so many `readers`; the reads and the writes that wait hold at most `most_bytes` each.
    """

    def __init__(
        self,
        readers: int,
        head_start: float,
        memory_used: Callable[[], int] = int,
        most_memory: float = math.inf,
        most_bytes: float = math.inf,
    ) -> None:
        self.reads = ThreadPool("quipu-reader", _POOL_FACTOR * readers, head_start, most_bytes)
        self.writes = ThreadPool("quipu-writer", _WRITERS, most_bytes=most_bytes)
        self._memory_used = memory_used
        self._most_memory = most_memory
        self._connected: OrderedDict[Store, None] = OrderedDict()  # the one used last is the last
        self._without_pages: OrderedDict[Store, None] = OrderedDict()
        self._last: Store | None = None  # the last of them, as long as nothing is taken out
        self._lock = threading.Lock()

    def begin_all(self) -> None:
        """Begins all threads, for a server that runs for long."""
        self.reads.begin_all()
        self.writes.begin_all()

    def note_use(self, store: "Store") -> None:
        if store is not self._last:
            with self._lock:
                self._without_pages.pop(store, None)
                self._connected[store] = None
                self._connected.move_to_end(store)
                self._last = store
        elif len(self._connected) == 1 and not self._without_pages:  # as of a server with a single tenant
            return
        while self._memory_used() > self._most_memory and (rest := self._next_rest()) is not None:
            rest()

    def forget(self, store: "Store") -> None:
        with self._lock:
            self._last = None
            self._connected.pop(store, None)
            self._without_pages.pop(store, None)

    def _next_rest(self) -> Callable[[], None] | None:
        """Return what frees some memory of a store that is not in use; None if there is no such store."""
        with self._lock:
            self._last = None
            if len(self._connected) > 1:
                store, _ = self._connected.popitem(last=False)
                self._without_pages[store] = None
                return store.drop_pages
            if self._without_pages:
                return self._without_pages.popitem(last=False)[0].rest
            return None


class Load(NamedTuple):
    """How busy a store is: the calls that wait, commits by size, and the sizes of its files in bytes.

    `groups[n]` counts commits of at most 2**n calls and more than half as many, `calls` is the calls of all of them.
    `oldest` are the seconds that the oldest of the writes and of the reads has waited, `taken` the calls that have left
    the two queues, and `waited` the seconds they were there.
    """

    writes: int
    reads: int
    groups: tuple[int, ...]
    calls: int
    file_bytes: int
    wal_bytes: int
    is_open: bool = True
    oldest: tuple[float, float] = (0.0, 0.0)
    taken: tuple[int, int] = (0, 0)
    waited: tuple[float, float] = (0.0, 0.0)


class Store:
    """An open database: `write` and `read` from an event loop, `read_now` inline, the `_sync` forms from a thread.

    With `undo_hours` the changes of undoable calls are kept for so long.
    """

    def __init__(
        self,
        database: Database,
        catch_faults: CatchFaults,
        *,
        readers: int = 2,
        max_wait: float = MAX_WAIT_SECONDS,
        group_limit: int = GROUP_LIMIT,
        undo_hours: int = 0,
        pools: Pools | None = None,
    ) -> None:
        self.context = database.context
        self._database = database
        self.probe, self.is_remote = database.probe, database.is_remote
        self._catch_faults = catch_faults
        self.undo_hours = undo_hours
        self._runner = GroupRunner(database.context, catch_faults, undo_hours)
        self.pools = pools or Pools(readers, database.read_head_start)
        self._callers = Callers(readers)
        # A caller leaves one reader to the others, and half of them while there are others.
        self._reads = CallQueue(
            self.pools.reads, self._read, at_once=readers + 1, each=self._callers.threads_of_each, max_wait=max_wait
        )
        self._writes = CallQueue(
            self.pools.writes, self._write, group=group_limit, max_wait=max_wait, dearer=self._reads
        )
        self._readers: list[ReadConnection] = []  # that are free
        self._writer: WriteConnection | Fault | None = None
        self._closing = False
        self._groups = [0] * _GROUP_BUCKETS
        self.committed = 0  # calls

    def start(self) -> None:
        """Starts the database's own work; the schema must be current."""
        self._database.start(self._catch_faults)

    def close(self) -> None:
        """Finishes the queued jobs and closes the database; safe to call twice."""
        if self._closing:
            return
        self._closing = True
        self._reads.stop()
        self._writes.stop()
        self.pools.forget(self)
        self._close_readers()
        self._catch_faults(self._database.close, None if isinstance(self._writer, Fault) else self._writer)

    def rest(self) -> None:
        """Closes the connections that are not in use; the next calls open others."""
        self._close_writer()
        self._close_readers()

    def drop_pages(self) -> None:
        """Closes the writer if it is not in use, and frees the pages of the readers that are not."""
        self._close_writer()
        free: list[ReadConnection] = []
        with suppress(IndexError):
            while True:
                free.append(self._readers.pop())
                self._catch_faults(free[-1].drop_pages)
        self._readers.extend(reversed(free))
        if self._closing:
            self._close_readers()

    def _close_writer(self) -> None:
        writer: WriteConnection | Fault | None = None
        with self._writes.while_idle() as is_idle:
            if is_idle:
                writer, self._writer = self._writer, None
        if writer is not None and not isinstance(writer, Fault):
            self._catch_faults(writer.close)

    def _close_readers(self) -> None:
        with suppress(IndexError):
            while True:
                self._catch_faults(self._readers.pop().close)

    def begin_write(
        self,
        work: Work,
        context: CallContext,
        deliver: Deliver,
        *,
        texts: Texts = (),
        merge: Merge | None = None,
        exclusive: bool = False,
        audited: bool = False,
        undoable: bool = False,
        size: int = 0,
    ) -> Job:
        """Queues `work` for the writer; after the commit `deliver` gets the answered job on this event loop.

        `Job` explains the options.
        """
        self._callers.note(context)
        job = Job(work, context, deliver, asyncio.get_running_loop())
        job.stages = current_stages.get()
        job.texts = texts
        job.merge = merge
        job.exclusive = exclusive
        job.audited = audited
        job.undoable = undoable
        job.size = size
        self._writes.put(job)
        return job

    def begin_read(self, work: Work, context: CallContext, deliver: Deliver, *, size: int = 0) -> Job:
        """Queues `work` for a reader thread; `deliver` gets the answered job on this event loop."""
        self._callers.note(context)
        job = Job(work, context, deliver, asyncio.get_running_loop())
        job.stages = current_stages.get()
        job.size = size
        self._reads.put(job)
        return job

    def write(
        self, work: Work, context: CallContext, *, merge: Merge | None = None, texts: Texts = (), **options: bool
    ) -> tuple[Job, asyncio.Future[Any]]:
        """Return `begin_write` with a future of a value or a Fault."""
        future, deliver = _future()
        return self.begin_write(work, context, deliver, merge=merge, texts=texts, **options), future

    def write_later(self, work: Work, context: CallContext, *, exclusive: bool = False) -> None:
        """Queues `work` for the writer without waiting for it; drops it if the queue has stopped, or others have waited
        too long.
        """
        job = Job(work, context, discard)
        job.exclusive = exclusive
        with suppress(Fault):
            self._writes.put(job)

    def read_later(self, work: Work) -> None:
        """Queues `work` for a reader without waiting for it; raises Fault("busy") if it may not wait."""
        self._reads.put(Job(work, CallContext(), discard))

    def read(self, work: Work, context: CallContext) -> tuple[Job, asyncio.Future[Any]]:
        """Return `begin_read` with a future of a value or a Fault."""
        future, deliver = _future()
        return self.begin_read(work, context, deliver), future

    def read_now(self, work: Callable[[Tx], R], context: CallContext) -> R | Fault:
        """Runs `work` on the event loop's thread; only for work under about 50 microseconds."""
        self._callers.note(context)
        return self._with_reader(lambda db: self._catch_faults(db.read, context, work))

    def write_sync(
        self, work: Callable[[Tx], R], context: CallContext = CallContext(), *, exclusive: bool = False
    ) -> R:
        """Return `write` for a thread without an event loop; raises the Fault."""
        return wait(self._writes, work, context, exclusive=exclusive)

    def read_sync(self, work: Callable[[Tx], R], context: CallContext = CallContext()) -> R:
        """Return `read` for a thread without an event loop; raises the Fault."""
        return wait(self._reads, work, context)

    def load(self) -> Load:
        """Return how busy the store is now."""
        writes, reads, sizes = self._writes, self._reads, self._database.sizes()
        counts = (writes.waiting, reads.waiting, tuple(self._groups), self.committed)
        ages = (writes.oldest, reads.oldest)
        return Load(*counts, *sizes, True, ages, (writes.taken, reads.taken), (writes.waited, reads.waited))

    def _read(self, jobs: list[Job]) -> None:
        job = jobs[0]
        job.answer = self._with_reader(lambda db: self._interruptible(db, job))
        end_stage(jobs, "read")
        answer_all(jobs)

    def _with_reader(self, run: Callable[[ReadConnection], R]) -> R | Fault:
        """Return `run(reader)`; a connection that was used last is used first."""
        db: ReadConnection | Fault
        try:
            db = self._readers.pop()
        except IndexError:
            db = self._catch_faults(self._database.reader)
        if isinstance(db, Fault):
            return db
        answer = run(db)
        if self._closing or _must_reopen(answer):
            self._catch_faults(db.close)
        else:
            self._readers.append(db)
            self.pools.note_use(self)
        return answer

    def _interruptible(self, db: ReadConnection, job: Job) -> Any:
        job.running = db
        answer = self._catch_faults(db.read, job.context, job.work)
        with interrupt_lock:
            job.running = None
        return answer

    def _write(self, jobs: list[Job]) -> None:
        if jobs[0].size > GROUP_BYTES and self._is_preparing(jobs[0]):
            return
        db = self._writer
        if db is None or isinstance(db, Fault):
            db = self._catch_faults(self._database.writer)
        self.pools.note_use(self)
        for group in (jobs,) if len(jobs) == 1 else commit_groups(jobs):
            if isinstance(db, Fault):
                fail_all(group, db)
            else:
                db = self._commit(db, group)
            if group[0].answer is MORE:
                db = self._put_back(db, group[0])
            if group[0].answer is not MORE:
                _mention_committed_slices(group[0])
                answer_all(group)
            if not isinstance(db, Fault):
                self._database.after_commit(db)
        self._writer = db
        self._writes.gather(len(jobs))

    def _is_preparing(self, job: Job) -> bool:
        """Prepares long texts; returns whether the call goes on later, after shorter ones that have come meanwhile.

        A text of 100 KB takes 10 ms of processor time, of which the transaction needs 3.
        """
        job.preparing = job.preparing or self._runner.prepare(job)
        while self._catch_faults(next, job.preparing, _PREPARED) is None:
            if self._writes.shorter_wait(job) and self._writes.put_back(job, first=True):
                return True
        return False

    def _commit(self, db: WriteConnection, group: Sequence[Job]) -> WriteConnection | Fault:
        outcome = self._catch_faults(self._runner.run, db, group)
        if not isinstance(outcome, Fault):
            self._groups[(len(group) - 1).bit_length()] += 1
            self.committed += len(group)
            if (earlier := group[0].earlier) is not None:
                earlier.commit()
            left = self._run_after_commit(db, group, outcome) if outcome else db
            if isinstance(left, Fault) or not any(map(_must_reopen, (job.answer for job in group))):
                return left
            self._catch_faults(left.close)
            return self._catch_faults(self._database.writer)
        stuck = isinstance(self._catch_faults(db.rollback), Fault)  # a rollback needs memory too
        if outcome.code not in ("busy", "storage") and len(group) > 1 and not stuck:
            return self._commit_singly(db, group)
        fail_all(group, outcome)
        if not (stuck or _must_reopen(outcome)):
            return db
        self._catch_faults(db.close)
        return self._catch_faults(self._database.writer)

    def _put_back(self, db: WriteConnection | Fault, job: Job) -> WriteConnection | Fault:
        """Lets the queue go before the next slice of a call; runs the call to its end if the queue has stopped.

        Work that nobody waits for ends there: the next server goes on with it.
        """
        while job.answer is MORE and not isinstance(db, Fault) and not self._writes.put_back(job):
            if job.deliver is discard:
                job.answer = None
            else:
                db = self._commit(db, [job])
        if isinstance(db, Fault) and job.answer is MORE:
            job.answer = db
        return db

    def _commit_singly(self, db: WriteConnection, group: Sequence[Job]) -> WriteConnection | Fault:
        """Commits each call alone, so that a fault in deferred work fails only its own call."""
        connection: WriteConnection | Fault = db
        for job in group:
            if isinstance(connection, Fault):
                fail_all([job], connection)
            else:
                connection = self._commit(connection, [job])
        return connection

    def _run_after_commit(
        self, db: WriteConnection, group: Sequence[Job], works: Sequence[Work]
    ) -> WriteConnection | Fault:
        """Runs the work after a commit in its own transaction; the answers of its calls say which work was not done.

        Slices that it returns follow behind the waiting jobs.
        """
        results: list[object] = []
        context = group[0].context._replace(reach=None)  # it completes the calls of all
        follower = Job(lambda tx: results.extend(work(tx) for work in works), context, discard)
        left = self._commit(db, [follower])
        if len(results) < len(works):
            fail_all(group, Fault("storage", f"{_COMPLETED_LATER} {follower.answer.message}"))
        for slices in results:
            if isinstance(slices, Slices):
                self.write_later(cast("Slices[object]", slices), CallContext(), exclusive=True)
        return left


_SEAL_KEY = "seal_key"
_HAD_KEYS = "had_keys"


class Stored(NamedTuple):
    """Of a store: its seal key, the number of its migrations, whether there were API keys, and whether the process that
    had the file before did not close it.
    """

    seal_key: bytes
    schema: int
    had_keys: bool
    unclean: bool = False


def note_keys(tx: Tx) -> None:
    tx.run("kernel.setting.add_if_missing", name=_HAD_KEYS, value="1")


def settled(db: CommandConnection, needed: bool) -> Stored:
    """Return the stored state of a database, which gets its seal key; keys that are `needed` now are remembered."""
    while (state := db.read(CallContext(), read_stored)) is None or needed > state.had_keys:
        with db.writing() as tx:
            tx.run("kernel.setting.add_if_missing", name=_SEAL_KEY, value=os.urandom(32).hex())
            if needed:
                note_keys(tx)
    return state


def read_stored(tx: Tx) -> Stored | None:
    """Return the stored state of a database; None before it has a seal key."""
    key = tx.one("kernel.setting.get", bytes.fromhex, name=_SEAL_KEY)
    had_keys = tx.one("kernel.setting.get", str, name=_HAD_KEYS) is not None
    return Stored(key, tx.one("kernel.setting.count_migrations", int) or 0, had_keys) if key else None

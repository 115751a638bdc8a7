"""The threads work waits for: one writer that commits in groups, a few readers, and the event loop's own connection."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kernel.embed.model import Embedding
from kernel.errors import Fault
from kernel.ids import earlier
from kernel.store import audit
from kernel.store.context import CallContext, StoreContext
from kernel.store.queue import (
    BoundedQueue,
    Deliver,
    Job,
    Merge,
    Work,
    answer_all,
    commit_groups,
    fail_all,
    interrupting,
    merge_runs,
    wait,
)
from kernel.store.sqlite.changesets import recorded
from kernel.store.sqlite.checkpointer import Checkpointer
from kernel.store.sqlite.connection import CatchFaults, Connection
from kernel.store.transaction import Tx

GROUP_LIMIT = 256
EXCLUSIVE_BUDGET = 60  # times what others may take, for a call with a transaction of its own
_GROUPS = 15  # by powers of two, the last for more than the largest group there may be
_UNDO_BYTES = 64 << 20


def _discard(_job: Job) -> None:
    """Nobody waits for this job."""


def must_reopen(answer: Any) -> bool:
    """Whether the connection that gave this answer should give no more."""
    return isinstance(answer, Fault) and answer.code == "storage"


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _promise() -> tuple[asyncio.Future[Any], Deliver]:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def deliver(job: Job) -> None:
        if not future.done():
            future.set_result(job.answer)

    return future, deliver


class Load(NamedTuple):
    """How busy a store is: what waits and may wait, how many commits there were by size, and how large its files are.

    `groups[n]` counts commits of at most 2**n calls and more than half as many, `calls` is the calls of all of them.
    """

    writes: int
    reads: int
    write_limit: int
    read_limit: int
    groups: tuple[int, ...]
    calls: int
    file_bytes: int
    wal_bytes: int


class Store:
    """The one file, open: `write` and `read` from an event loop, `read_now` inline, the `_sync` forms from a thread."""

    def __init__(
        self,
        file: Path,
        context: StoreContext,
        catch_faults: CatchFaults,
        *,
        readers: int = 2,
        write_limit: int = 1024,
        read_limit: int = 256,
        read_patience: float = 2.0,
        durable: bool = True,
        group_limit: int = GROUP_LIMIT,
        undo_hours: int = 0,
    ) -> None:
        self.file = file
        self.context = context
        self._catch_faults = catch_faults
        self._durable = durable
        self._group_limit = group_limit
        self._undo_hours = undo_hours
        self._reader_count = readers
        self._writes = BoundedQueue(write_limit)
        self._reads = BoundedQueue(read_limit, read_patience)
        self._inline: Connection | None = None
        self._checkpointer = Checkpointer(self._catch_faults, self._writer)
        self._closing = False
        self._groups = [0] * _GROUPS
        self._calls = 0

    def start(self) -> None:
        """Starts the writer, the readers and the checkpointer; the file must have been migrated."""
        self._writes.start(self._write_loop, "quipu-writer")
        for number in range(self._reader_count):
            self._reads.start(self._read_loop, f"quipu-reader-{number}")
        self._checkpointer.start()

    def close(self) -> None:
        """Finishes what is queued, folds the write-ahead log into the file and closes."""
        if self._closing:
            return
        self._closing = True
        self._reads.stop()
        self._writes.stop()
        self._checkpointer.stop()
        if self._inline is not None:
            self._catch_faults(self._inline.close)
        self._catch_faults(self._fold)

    def _fold(self) -> None:
        db = Connection(self.file, self.context, readonly=False)
        try:
            db.checkpoint(truncate=True)
        finally:
            db.close()

    def begin_write(
        self,
        work: Work,
        context: CallContext,
        deliver: Deliver,
        *,
        texts: Sequence[str] = (),
        merge: Merge | None = None,
        exclusive: bool = False,
        audited: bool = False,
        undoable: bool = False,
    ) -> Job:
        """Queues `work` for the writer; after the commit `deliver` gets the job on this event loop, answered.

        `texts` are embedded before the write lock is taken; an `alone` call gets a transaction of its own. What a
        `noted` one changed stands in the audit, with the changes themselves if it is `undoable`.
        """
        job = Job(work, context, deliver, asyncio.get_running_loop())
        job.texts = texts
        job.merge = merge
        job.exclusive = exclusive
        job.audited = audited
        job.undoable = undoable
        self._writes.put(job)
        return job

    def begin_read(self, work: Work, context: CallContext, deliver: Deliver) -> Job:
        """Queues `work` for a reader thread; `deliver` gets the job on this event loop, answered."""
        job = Job(work, context, deliver, asyncio.get_running_loop())
        self._reads.put(job)
        return job

    def write(self, work: Work, context: CallContext, **more: Any) -> tuple[Job, asyncio.Future[Any]]:
        """`begin_write` with a future, which answers with a value or a Fault."""
        future, deliver = _promise()
        return self.begin_write(work, context, deliver, **more), future

    def write_later(self, work: Work, context: CallContext) -> None:
        """Queues `work` for the writer, with nobody waiting; where the queue is full it is not done."""
        with suppress(Fault):
            self._writes.put(Job(work, context, _discard))

    def read(self, work: Work, context: CallContext) -> tuple[Job, asyncio.Future[Any]]:
        """Queues `work` for a reader thread: one hop for the whole call."""
        future, deliver = _promise()
        return self.begin_read(work, context, deliver), future

    def read_now(self, work: Work, context: CallContext) -> Any:
        """`work` on the calling thread's own reader; for work under about 50 microseconds, on the event loop only."""
        db = self._inline
        if db is None:
            opened: Connection | Fault = self._catch_faults(self._reader)
            if isinstance(opened, Fault):
                return opened
            db = self._inline = opened
        answer = self._catch_faults(db.read, context, work)
        if must_reopen(answer):
            self._catch_faults(db.close)
            self._inline = None
        return answer

    def write_sync(self, work: Work, context: CallContext = CallContext(), *, exclusive: bool = False) -> Any:
        """`write` for a thread without an event loop; raises the Fault."""
        return wait(self._writes, work, context, exclusive=exclusive)

    def read_sync(self, work: Work, context: CallContext = CallContext()) -> Any:
        """`read` for a thread without an event loop; raises the Fault."""
        return wait(self._reads, work, context)

    def load(self) -> Load:
        """How busy it is at this moment."""
        writes, reads = self._writes, self._reads
        files = (_size(self.file), _size(self.file.with_name(f"{self.file.name}-wal")))
        return Load(writes.waiting, reads.waiting, writes.limit, reads.limit, tuple(self._groups), self._calls, *files)

    def _reader(self) -> Connection:
        db = Connection(self.file, self.context, readonly=True)
        db.load_vectors()
        return db

    def _read_loop(self) -> None:
        db: Connection | Fault | None = None
        while (jobs := self._reads.take(1)) is not None:
            job = jobs[0]
            if job.cancelled:
                continue
            if not isinstance(db, Connection):
                db = self._catch_faults(self._reader)
            job.answer = self._interruptible(db, job) if isinstance(db, Connection) else db
            answer_all(jobs)
            if isinstance(db, Connection) and must_reopen(job.answer):
                self._catch_faults(db.close)
                db = None
        if isinstance(db, Connection):
            db.close()

    def _interruptible(self, db: Connection, job: Job) -> Any:
        job.running = db
        answer = self._catch_faults(db.read, job.context, job.work)
        with interrupting:
            job.running = None
        return answer

    def _write_loop(self) -> None:
        db = self._catch_faults(self._writer)
        while (jobs := self._writes.take(self._group_limit)) is not None:
            jobs = [job for job in jobs if not job.cancelled]
            if isinstance(db, Fault):
                db = self._catch_faults(self._writer)
            for group in commit_groups(jobs):
                if isinstance(db, Fault):
                    fail_all(group, db)
                else:
                    db = self._commit(db, group)
                answer_all(group)
                if isinstance(db, Connection):
                    self._checkpointer.after(db)
        if not isinstance(db, Fault):
            db.close()

    def _writer(self) -> Connection:
        db = Connection(self.file, self.context, readonly=False, durable=self._durable)
        db.load_vectors()
        return db

    def _commit(self, db: Connection, group: Sequence[Job]) -> Connection | Fault:
        outcome = self._catch_faults(self._group, db, group)
        if not isinstance(outcome, Fault):
            self._groups[(len(group) - 1).bit_length()] += 1
            self._calls += len(group)
            return db
        stuck = isinstance(self._catch_faults(db.rollback), Fault)  # it needs memory too
        if outcome.code not in ("busy", "storage") and len(group) > 1 and not stuck:
            return self._one_by_one(db, group)
        fail_all(group, outcome)
        if not (stuck or must_reopen(outcome)):
            return db
        self._catch_faults(db.close)
        return self._catch_faults(self._writer)

    def _one_by_one(self, db: Connection, group: Sequence[Job]) -> Connection | Fault:
        kept: Connection | Fault = db
        for job in group:
            if isinstance(kept, Fault):
                fail_all([job], kept)
            else:
                kept = self._commit(kept, [job])
        return kept

    def _group(self, db: Connection, group: Sequence[Job]) -> None:
        vectors = self._embed_group(group)
        tx = db.begin(group[0].context)
        tx.preload(vectors)
        for run in merge_runs(group):
            if len(run) == 1 or not self._run_batch(db, tx, run):
                for job in run:
                    job.answer = self._audited_call(db, tx, job) if job.audited else self._call(db, tx, job)
        db.commit(tx)

    def _call(self, db: Connection, tx: Tx, job: Job) -> Any:
        return db.call(tx, job.context, self._catch_faults, job.work, EXCLUSIVE_BUDGET if job.exclusive else 1)

    def _audited_call(self, db: Connection, tx: Tx, job: Job) -> Any:
        """Runs one call and notes what it changed, if anything."""
        keep, changes = job.undoable and self._undo_hours > 0, b""
        if keep:
            audit.expire(tx, earlier(tx.now, self._undo_hours))
        before = db.changed
        if keep:
            answer, changes = recorded(db, partial(self._call, db, tx, job), _UNDO_BYTES)
        else:
            answer = self._call(db, tx, job)
        if not isinstance(answer, Fault) and (db.changed > before or tx.deferred_of_call):
            audit.note(tx, changes=changes)
        return answer

    def _embed_group(self, group: Sequence[Job]) -> dict[str, Embedding]:
        """What the group will embed, computed before the lock; a failure is left for the call that needs it."""
        texts = [text for job in group for text in job.texts]
        embedder = self.context.embedder
        if embedder is None or not texts:
            return {}
        found = self._catch_faults(embedder.embed, texts)
        return {} if isinstance(found, Fault) else dict(zip(texts, found, strict=True))

    def _run_batch(self, db: Connection, tx: Tx, run: Sequence[Job]) -> bool:
        """Whether the run was answered as one; if not, nothing of it stays and each call must run by itself."""
        requests = [job.merge.request for job in run if job.merge]
        many = run[0].merge and run[0].merge.batch
        answers = db.call(tx, run[0].context, self._catch_faults, lambda tx: many(tx, requests) if many else None)
        if isinstance(answers, Fault):
            return False
        for job, answer in zip(run, answers, strict=True):
            job.answer = answer
        if run[0].audited:
            audit.note(tx)
        return True

"""The threads work waits for: one writer that commits in groups, a few readers, and the event loop's own connection."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from kernel.embed import Embedding
from kernel.errors import Fault
from kernel.store import Connection, Guard, Origin, Tx, World

Work = Callable[[Tx], Any]
GROUP_LIMIT = 256
_interrupting = threading.Lock()  # an interrupt must not hit the connection's next call
_WAL_PAGES = 2000
_WAL_PAGES_HARD = 32000


class Merge(NamedTuple):
    """A call that may share statements with its neighbours: `many(tx, requests)` answers each, by value or Fault."""

    many: Callable[[Tx, Sequence[Any]], list[Any]]
    request: Any


class Job:
    """One call on its way through a lane; `cancel()` before it starts means it never does."""

    __slots__ = ("alone", "answer", "cancelled", "deliver", "loop", "merge", "origin", "running", "texts", "work")

    def __init__(
        self, work: Work, who: Origin, deliver: "Callable[[Job], None]", loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.work = work
        self.origin = who
        self.deliver = deliver
        self.loop = loop
        self.alone = False
        self.texts: Sequence[str] = ()
        self.merge: Merge | None = None
        self.cancelled = False
        self.running: Connection | None = None
        self.answer: Any = None

    def cancel(self) -> None:
        """Drops the job if it has not begun; interrupts it if it is a read under way."""
        self.cancelled = True
        with _interrupting:
            if self.running is not None:
                self.running.interrupt()


class Lane:
    """A bounded queue drained by threads; past the bound `put` refuses with `busy` instead of waiting."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._stopped = False

    def put(self, job: Job) -> None:
        """Queues a job; raises Fault("busy") when the queue is full or stopped."""
        if self._stopped or self._queue.qsize() >= self._limit:
            raise Fault("busy", "The server is busy, try again.")
        self._queue.put(job)

    def start(self, run: Callable[[], None], name: str) -> None:
        """Adds one thread that drains the queue."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def take(self, limit: int) -> list[Job] | None:
        """The next jobs, at least one and at most `limit`, waiting for the first; None at the end."""
        queue = self._queue
        first = queue.get()
        if first is None:
            return None
        jobs = [first]
        while len(jobs) < limit and queue.qsize():
            job = queue.get()
            if job is None:
                queue.put(None)
                break
            jobs.append(job)
        return jobs

    def stop(self) -> None:
        """Lets the threads finish what is queued, then ends them."""
        self._stopped = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        late = [job for job in _rest(self._queue) if job is not None]
        _fail(late, Fault("busy", "The server is stopping."))
        _answer(late)


class Store:
    """The one file, open: `write` and `read` from an event loop, `read_now` inline, the `_sync` forms from a thread."""

    def __init__(
        self, file: Path, world: World, guard: Guard, *,
        readers: int = 2, write_limit: int = 1024, read_limit: int = 256,
        durable: bool = True, group_limit: int = GROUP_LIMIT,
    ) -> None:  # fmt: skip
        self.file = file
        self.world = world
        self._guard = guard
        self._durable = durable
        self._group_limit = group_limit
        self._reader_count = readers
        self._writes = Lane(write_limit)
        self._reads = Lane(read_limit)
        self._inline: Connection | None = None
        self._checkpoint = threading.Event()
        self._keeper = threading.Thread(target=self._checkpoint_loop, name="quipu-checkpoint", daemon=True)
        self._closing = False

    def start(self) -> None:
        """Starts the writer, the readers and the checkpointer; the file must have been migrated."""
        self._writes.start(self._write_loop, "quipu-writer")
        for number in range(self._reader_count):
            self._reads.start(self._read_loop, f"quipu-reader-{number}")
        self._keeper.start()

    def close(self) -> None:
        """Finishes what is queued, folds the write-ahead log into the file and closes."""
        if self._closing:
            return
        self._closing = True
        self._reads.stop()
        self._writes.stop()
        self._checkpoint.set()
        self._keeper.join()
        if self._inline is not None:
            self._inline.close()
        with_checkpoint = Connection(self.file, self.world, readonly=False)
        with_checkpoint.checkpoint(truncate=True)
        with_checkpoint.close()

    def write(
        self, work: Work, who: Origin, *, texts: Sequence[str] = (), merge: Merge | None = None, alone: bool = False
    ) -> tuple[Job, asyncio.Future[Any]]:
        """Queues `work` for the writer; the future answers after the commit, with a value or a Fault.

        `texts` are embedded before the write lock is taken; an `alone` call gets a transaction of its own.
        """
        job, future = self._job(work, who)
        job.texts = texts
        job.merge = merge
        job.alone = alone
        self._writes.put(job)
        return job, future

    def read(self, work: Work, who: Origin) -> tuple[Job, asyncio.Future[Any]]:
        """Queues `work` for a reader thread: one hop for the whole call."""
        job, future = self._job(work, who)
        self._reads.put(job)
        return job, future

    def read_now(self, work: Work, who: Origin) -> Any:
        """`work` on the calling thread's own reader; for work under about 50 microseconds, on the event loop only."""
        if self._inline is None:
            opened = self._guard(self._reader)
            if isinstance(opened, Fault):
                return opened
            self._inline = opened
        return self._guard(self._inline.read, who, work)

    def write_sync(self, work: Work, who: Origin = Origin(), *, alone: bool = False) -> Any:
        """`write` for a thread without an event loop; raises the Fault."""
        return _wait(self._writes, work, who, alone=alone)

    def read_sync(self, work: Work, who: Origin = Origin()) -> Any:
        """`read` for a thread without an event loop; raises the Fault."""
        return _wait(self._reads, work, who)

    def _job(self, work: Work, who: Origin) -> tuple[Job, asyncio.Future[Any]]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def deliver(job: Job) -> None:
            if not future.done():
                future.set_result(job.answer)

        return Job(work, who, deliver, loop), future

    def _reader(self) -> Connection:
        db = Connection(self.file, self.world, readonly=True)
        db.load_vectors()
        return db

    def _read_loop(self) -> None:
        db: Connection | Fault | None = None
        while (jobs := self._reads.take(1)) is not None:
            job = jobs[0]
            if job.cancelled:
                continue
            if not isinstance(db, Connection):
                db = self._guard(self._reader)
            job.answer = self._interruptible(db, job) if isinstance(db, Connection) else db
            _answer(jobs)
        if isinstance(db, Connection):
            db.close()

    def _interruptible(self, db: Connection, job: Job) -> Any:
        job.running = db
        answer = self._guard(db.read, job.origin, job.work)
        with _interrupting:
            job.running = None
        return answer

    def _write_loop(self) -> None:
        db = self._guard(self._writer)
        while (jobs := self._writes.take(self._group_limit)) is not None:
            jobs = [job for job in jobs if not job.cancelled]
            if isinstance(db, Fault):
                db = self._guard(self._writer)
            for group in _groups(jobs):
                if isinstance(db, Fault):
                    _fail(group, db)
                else:
                    db = self._commit(db, group)
                _answer(group)
        if not isinstance(db, Fault):
            db.close()

    def _writer(self) -> Connection:
        db = Connection(self.file, self.world, readonly=False, durable=self._durable)
        db.load_vectors()
        return db

    def _commit(self, db: Connection, group: Sequence[Job]) -> Connection | Fault:
        outcome = self._guard(self._group, db, group)
        if not isinstance(outcome, Fault):
            if db.wal_pages > _WAL_PAGES_HARD:
                self._guard(db.checkpoint)  # between two groups it reaches the end, so the log starts over
            elif db.wal_pages > _WAL_PAGES:
                self._checkpoint.set()
            return db
        self._guard(db.rollback)
        if outcome.code not in ("busy", "storage") and len(group) > 1:
            return self._one_by_one(db, group)
        _fail(group, outcome)
        if outcome.code != "storage":
            return db
        self._guard(db.close)
        return self._guard(self._writer)

    def _one_by_one(self, db: Connection, group: Sequence[Job]) -> Connection | Fault:
        kept: Connection | Fault = db
        for job in group:
            if isinstance(kept, Fault):
                _fail([job], kept)
            else:
                kept = self._commit(kept, [job])
        return kept

    def _group(self, db: Connection, group: Sequence[Job]) -> None:
        vectors = self._embedded(group)
        tx = db.begin(group[0].origin)
        tx.preload(vectors)
        for run in _runs(group):
            if len(run) == 1 or not self._merged(db, tx, run):
                for job in run:
                    job.answer = db.call(tx, job.origin, self._guard, job.work)
        db.commit(tx)

    def _embedded(self, group: Sequence[Job]) -> dict[str, Embedding]:
        """What the group will embed, computed before the lock; a failure is left for the call that needs it."""
        texts = [text for job in group for text in job.texts]
        embedder = self.world.embedder
        if embedder is None or not texts:
            return {}
        found = self._guard(embedder.embed, texts)
        return {} if isinstance(found, Fault) else dict(zip(texts, found, strict=True))

    def _merged(self, db: Connection, tx: Tx, run: Sequence[Job]) -> bool:
        """Whether the run was answered as one; if not, nothing of it stays and each call must run by itself."""
        requests = [job.merge.request for job in run if job.merge]
        many = run[0].merge and run[0].merge.many
        answers = db.call(tx, run[0].origin, self._guard, lambda tx: many(tx, requests) if many else None)
        if isinstance(answers, Fault):
            return False
        for job, answer in zip(run, answers, strict=True):
            job.answer = answer
        return True

    def _checkpoint_loop(self) -> None:
        db: Connection | Fault | None = None
        while not self._closing:
            self._checkpoint.wait()
            self._checkpoint.clear()
            if self._closing:
                break
            if not isinstance(db, Connection):
                db = self._guard(self._writer)
            if isinstance(db, Connection):
                self._guard(db.checkpoint)
        if isinstance(db, Connection):
            db.close()


def _groups(jobs: list[Job]) -> list[list[Job]]:
    groups: list[list[Job]] = []
    for job in jobs:
        if job.alone or not groups or groups[-1][0].alone:
            groups.append([job])
        else:
            groups[-1].append(job)
    return groups


def _rest(queue: SimpleQueue[Job | None]) -> list[Job | None]:
    return [queue.get() for _ in range(queue.qsize())]


def _runs(group: Sequence[Job]) -> list[list[Job]]:
    """Neighbours whose calls may be merged, everything else by itself, in order."""
    runs: list[list[Job]] = []
    for job in group:
        last = runs[-1][-1] if runs else None
        alike = last and last.merge and job.merge and last.merge.many is job.merge.many and last.origin == job.origin
        if alike:
            runs[-1].append(job)
        else:
            runs.append([job])
    return runs


def _fail(jobs: Sequence[Job], fault: Fault) -> None:
    for job in jobs:
        job.answer = fault


def _answer(jobs: Sequence[Job]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop | None, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, done in by_loop.items():
        if loop is None:
            _deliver(done)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(_deliver, done)


def _deliver(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.deliver(job)


def _wait(lane: Lane, work: Work, who: Origin, *, alone: bool = False) -> Any:
    done = threading.Event()
    job = Job(work, who, lambda _job: done.set())
    job.alone = alone
    lane.put(job)
    done.wait()
    if isinstance(job.answer, Fault):
        raise job.answer
    return job.answer

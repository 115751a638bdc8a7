"""Bounded queues of calls, the groups in which writes commit, and the delivery of answers."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, cast

from kernel.errors import Fault
from kernel.store.audit import EarlierSlices
from kernel.store.context import CallContext
from kernel.store.engine import ReadConnection
from kernel.store.transaction import Tx

R = TypeVar("R")
Work = Callable[[Tx], Any]
Deliver = Callable[["Job"], None]
interrupt_lock = threading.Lock()  # held so that an interrupt cannot hit the connection's next call


class Merge(NamedTuple):
    """A call that can share statements with its neighbours: `batch(tx, requests)` gives a value or Fault for each."""

    batch: Callable[[Tx, Sequence[Any]], list[Any]]
    request: object


class Job:
    """One call in a queue; a job that is cancelled before it starts never runs.

    `texts` are embedded before the write lock is taken, an `exclusive` call has a transaction of its own, the changes
    of an `audited` call are recorded in the audit, and those of an `undoable` one kept for undo. `earlier` is what the
    audit keeps of the slices of the call that have committed.
    """

    __slots__ = (
        "answer",
        "audited",
        "cancelled",
        "context",
        "deliver",
        "earlier",
        "exclusive",
        "loop",
        "merge",
        "queued",
        "running",
        "texts",
        "undoable",
        "work",
    )

    def __init__(
        self, work: Work, context: CallContext, deliver: Deliver, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.work = work
        self.context = context
        self.deliver = deliver
        self.loop = loop
        self.queued = 0.0
        self.exclusive = False
        self.audited = False
        self.undoable = False
        self.texts: Sequence[str] = ()
        self.merge: Merge | None = None
        self.earlier: EarlierSlices | None = None
        self.cancelled = False
        self.running: ReadConnection | None = None
        self.answer: Any = None

    def cancel(self) -> None:
        """Drops the job if it has not started; interrupts it if it is a running read."""
        self.cancelled = True
        with interrupt_lock:
            if self.running is not None:
                self.running.interrupt()


class BoundedQueue:
    """A queue drained by threads; when it is full, `put` raises Fault("busy") instead of waiting.

    So it does while jobs wait and the last one taken waited longer than `max_wait` seconds: a queue that has fallen
    behind sheds load until it is empty.
    """

    def __init__(self, limit: int, max_wait: float = math.inf) -> None:
        self.limit = limit
        self._max_wait = max_wait
        self._last_wait = 0.0
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._stopped = False

    @property
    def waiting(self) -> int:
        """The number of jobs that wait."""
        return self._queue.qsize()

    def put(self, job: Job) -> None:
        """Queues a job; raises Fault("busy") when the queue is full, too slow or stopped."""
        waiting = self._queue.qsize()
        if self._stopped or waiting >= self.limit or (waiting and self._last_wait > self._max_wait):
            raise Fault("busy", "The server is busy, try again.")
        job.queued = time.monotonic()
        self._queue.put(job)

    def put_back(self, job: Job) -> bool:
        """Queues a job that has more to do behind all others; False where the queue has stopped."""
        if self._stopped:
            return False
        job.queued = time.monotonic()
        self._queue.put(job)
        return True

    def start(self, run: Callable[[], None], name: str) -> None:
        """Adds one thread that drains the queue."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def take(self, limit: int) -> list[Job] | None:
        """The next jobs, at least one and at most `limit`, waiting for the first; None once the queue has stopped."""
        queue = self._queue
        first = queue.get()
        if first is None:
            return None
        self._last_wait = time.monotonic() - first.queued
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
        # A job can slip in between the check in `put` and the end of the threads.
        late = [job for job in _drain(self._queue) if job is not None]
        fail_all(late, Fault("busy", "The server is stopping."))
        answer_all(late)


def _drain(queue: SimpleQueue[Job | None]) -> list[Job | None]:
    return [queue.get() for _ in range(queue.qsize())]


def commit_groups(jobs: list[Job]) -> list[list[Job]]:
    """The jobs in the groups they commit in, in order: an exclusive one alone, its neighbours together."""
    groups: list[list[Job]] = []
    for job in jobs:
        if job.exclusive or not groups or groups[-1][0].exclusive:
            groups.append([job])
        else:
            groups[-1].append(job)
    return groups


def merge_runs(group: Sequence[Job]) -> list[list[Job]]:
    """The jobs in runs of neighbours that can be merged, in order; any other job is a run of its own."""
    runs: list[list[Job]] = []
    for job in group:
        if runs and _mergeable(runs[-1][-1], job):
            runs[-1].append(job)
        else:
            runs.append([job])
    return runs


def _mergeable(last: Job, job: Job) -> bool:
    if last.merge is None or job.merge is None:
        return False
    return last.merge.batch is job.merge.batch and last.context == job.context


def fail_all(jobs: Sequence[Job], fault: Fault) -> None:
    """Answers every job with the same Fault."""
    for job in jobs:
        job.answer = fault


def answer_all(jobs: Sequence[Job]) -> None:
    """Delivers the answers, those for an event loop with one wake-up of that loop."""
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
        # The callback often holds the job: dropping it here breaks a cycle that only the collector would free.
        deliver, job.deliver = job.deliver, discard
        deliver(job)


def discard(_job: Job) -> None:
    """Ignores the answer of a job."""


def wait(queue: BoundedQueue, work: Callable[[Tx], R], context: CallContext, *, exclusive: bool = False) -> R:
    """Queues `work` and blocks the calling thread until it is answered; raises the Fault."""
    done = threading.Event()
    job = Job(work, context, lambda _job: done.set())
    job.exclusive = exclusive
    queue.put(job)
    done.wait()
    if isinstance(job.answer, Fault):
        raise job.answer
    return cast("R", job.answer)

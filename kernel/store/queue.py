"""Calls on their way through a queue: what waits, in which groups it runs, and how it is answered."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

from kernel.errors import Fault
from kernel.store.context import CallContext
from kernel.store.sqlite.connection import Connection
from kernel.store.transaction import Tx

Work = Callable[[Tx], Any]
Deliver = Callable[["Job"], None]
interrupting = threading.Lock()  # an interrupt must not hit the connection's next call


class Merge(NamedTuple):
    """A call that may share statements with its neighbours: `many(tx, requests)` answers each, by value or Fault."""

    batch: Callable[[Tx, Sequence[Any]], list[Any]]
    request: Any


class Job:
    """One call on its way through a lane; `cancel()` before it starts means it never does."""

    __slots__ = (
        "answer",
        "audited",
        "cancelled",
        "context",
        "deliver",
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
        self.cancelled = False
        self.running: Connection | None = None
        self.answer: Any = None

    def cancel(self) -> None:
        """Drops the job if it has not begun; interrupts it if it is a read under way."""
        self.cancelled = True
        with interrupting:
            if self.running is not None:
                self.running.interrupt()


class BoundedQueue:
    """A bounded queue drained by threads; past the bound `put` refuses with `busy` instead of waiting.

    So it does while others wait and the last to have its turn waited for more than `patience` seconds.
    """

    def __init__(self, limit: int, patience: float = math.inf) -> None:
        self.limit = limit
        self._patience = patience
        self._waited = 0.0
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._stopped = False

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self._queue.qsize()

    def put(self, job: Job) -> None:
        """Queues a job; raises Fault("busy") when the queue is full, too slow or stopped."""
        waiting = self._queue.qsize()
        if self._stopped or waiting >= self.limit or (waiting and self._waited > self._patience):
            raise Fault("busy", "The server is busy, try again.")
        job.queued = time.monotonic()
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
        self._waited = time.monotonic() - first.queued
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
        fail_all(late, Fault("busy", "The server is stopping."))
        answer_all(late)


def commit_groups(jobs: list[Job]) -> list[list[Job]]:
    """The jobs in the groups they commit in: those that are alone by themselves, their neighbours together."""
    groups: list[list[Job]] = []
    for job in jobs:
        if job.exclusive or not groups or groups[-1][0].exclusive:
            groups.append([job])
        else:
            groups[-1].append(job)
    return groups


def _rest(queue: SimpleQueue[Job | None]) -> list[Job | None]:
    return [queue.get() for _ in range(queue.qsize())]


def merge_runs(group: Sequence[Job]) -> list[list[Job]]:
    """Neighbours whose calls may be merged, everything else by itself, in order."""
    runs: list[list[Job]] = []
    for job in group:
        last = runs[-1][-1] if runs else None
        alike = (
            last and last.merge and job.merge and last.merge.batch is job.merge.batch and last.context == job.context
        )
        if alike:
            runs[-1].append(job)
        else:
            runs.append([job])
    return runs


def fail_all(jobs: Sequence[Job], fault: Fault) -> None:
    """Gives every job the same Fault."""
    for job in jobs:
        job.answer = fault


def answer_all(jobs: Sequence[Job]) -> None:
    """Delivers the answers, each on the event loop that waits for it."""
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
        deliver, job.deliver = job.deliver, _delivered  # who waits knows the job too: a cycle only the collector ends
        deliver(job)


def _delivered(_job: Job) -> None:
    """Whoever waited has the answer."""


def wait(lane: BoundedQueue, work: Work, context: CallContext, *, exclusive: bool = False) -> Any:
    """Queues `work` and waits for its answer on a thread of its own; raises the Fault."""
    done = threading.Event()
    job = Job(work, context, lambda _job: done.set())
    job.exclusive = exclusive
    lane.put(job)
    done.wait()
    if isinstance(job.answer, Fault):
        raise job.answer
    return job.answer

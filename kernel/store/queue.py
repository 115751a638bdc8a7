"""Bounded queues of calls, the groups in which writes commit, and the delivery of answers."""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from kernel.core.errors import Fault
from kernel.store.audit import EarlierSlices
from kernel.store.context import CallContext
from kernel.store.engine import ReadConnection
from kernel.store.transaction import Tx

R = TypeVar("R")
Work = Callable[[Tx], Any]
Deliver = Callable[["Job"], None]
Texts = Sequence[str] | Callable[[], Sequence[str]]
interrupt_lock = threading.Lock()  # held so that an interrupt cannot hit the connection's next call


class Merge(NamedTuple):
    """A call that can share statements with its neighbours: `batch(tx, requests)` gives a value or Fault for each."""

    batch: Callable[[Tx, Sequence[Any]], list[Any]]
    request: object


class Job:
    """One call in a queue; a job that is cancelled before it starts never runs.

    `texts`, or what they return, are embedded before the write lock is taken, an `exclusive` call has a transaction of
    its own, the changes of an `audited` call are recorded in the audit, and those of an `undoable` one kept for undo.
    `earlier` is the audit's state of the slices of the call that have committed.
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
        self.texts: Texts = ()
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


class _Line:
    """The jobs of one caller, and how long the last one taken had waited."""

    __slots__ = ("jobs", "last_wait")

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()
        self.last_wait = 0.0


class BoundedQueue:
    """A queue drained by threads, in which callers take turns; a job that may not wait raises Fault("busy").

    So it does if a caller's jobs wait and the last job taken waited longer than `max_wait` seconds: a caller that has
    fallen behind is refused until its line is empty. In a full queue a caller with fewer jobs takes the place of the
    last job of the caller with the most.

    The thread that has been idle for the shortest time gets the next job: its data are still in the caches. No thread
    begins a job within `head_start` seconds after another one has begun the job that it still runs.
    """

    def __init__(self, limit: int, max_wait: float = math.inf, head_start: float = 0.0) -> None:
        self.limit = limit
        self.waiting = 0  # the number of jobs that wait
        self.taken = 0  # the jobs that no longer wait, and how many seconds they have
        self.waited = 0.0
        self._max_wait = max_wait
        self._head_start = head_start
        self._begun: dict[int, float] = {}  # when each thread that runs a job began it
        self._lines: dict[str, _Line] = {}  # the first one is next
        self._lock = threading.Lock()
        self._idle: list[threading.Lock] = []  # of the threads that wait, each for its own
        self._threads: list[threading.Thread] = []
        self._stopped = False

    def put(self, job: Job) -> None:
        """Queues a job; raises Fault("busy") if it may not wait, and when the queue is stopped."""
        job.queued = time.monotonic()
        with self._lock:
            displaced = self._enqueue(job)
            self._wake()
        if displaced is not None:
            fail_all([displaced], _busy())
            answer_all([displaced])

    def put_back(self, job: Job) -> bool:
        """Queues a job that has more to do behind all others; False if the queue has stopped."""
        with self._lock:
            if self._stopped:
                return False
            job.queued = time.monotonic()
            self._lines.setdefault(_caller(job), _Line()).jobs.append(job)
            self.waiting += 1
            self._wake()
        return True

    def start(self, run: Callable[[], None], name: str) -> None:
        """Adds one thread that drains the queue."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def take(self, limit: int) -> list[Job] | None:
        """Return the next jobs, at least one and at most `limit`, waiting for the first; None once the queue has
        stopped.
        """
        own = threading.Lock()
        own.acquire()
        with self._lock:
            self._begun.pop(threading.get_ident(), None)
        while True:
            with self._lock:
                delay = self._head_start_left()
                if self.waiting and not delay:
                    self._begun[threading.get_ident()] = time.monotonic()
                    return self._next(limit)
                if self._stopped and not self.waiting:
                    return None
                idle = not self.waiting
                if idle:
                    self._idle.append(own)
            if idle:
                own.acquire()
            else:
                time.sleep(delay)

    def stop(self) -> None:
        """Lets the threads finish the queued jobs, then ends them."""
        with self._lock:
            self._stopped = True
            while self._idle:
                self._wake()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        # A job can slip in between the check in `put` and the end of the threads.
        late = self._next(self.waiting)
        fail_all(late, Fault("busy", "The server is stopping."))
        answer_all(late)

    def _head_start_left(self) -> float:
        """Return seconds until another job may begin."""
        last = max(self._begun.values(), default=-math.inf)
        return max(0.0, last + self._head_start - time.monotonic())

    def _wake(self) -> None:
        if self._idle:
            self._idle.pop().release()

    def _enqueue(self, job: Job) -> Job | None:
        """Queues a job; the job whose place it takes, if any."""
        caller = _caller(job)
        line = self._lines.get(caller) or _Line()
        if self._stopped or (line.jobs and line.last_wait > self._max_wait):
            raise _busy()
        displaced = None
        if self.waiting >= self.limit:
            most = max((one.jobs for one in self._lines.values()), key=len, default=line.jobs)
            if len(most) <= len(line.jobs) + 1 or most[-1].earlier is not None:
                raise _busy()
            displaced = most.pop()
            self.waiting -= 1
        line.jobs.append(job)
        self._lines[caller] = line
        self.waiting += 1
        return displaced

    def _next(self, limit: int) -> list[Job]:
        """At most `limit` jobs: each caller in its turn has an equal part, whose jobs stay neighbours to be merged."""
        jobs: list[Job] = []
        part = max(1, limit // max(1, len(self._lines)))
        while self._lines and len(jobs) < limit:
            caller = next(iter(self._lines))
            line = self._lines.pop(caller)
            taken = [line.jobs.popleft() for _ in range(min(part, len(line.jobs), limit - len(jobs)))]
            now = time.monotonic()
            line.last_wait = now - taken[0].queued
            self.waited += sum(now - job.queued for job in taken)
            if line.jobs:
                self._lines[caller] = line
            jobs += taken
        self.waiting -= len(jobs)
        self.taken += len(jobs)
        return jobs


def _caller(job: Job) -> str:
    """Return the key; behind it clients give themselves any name."""
    return job.context.actor.partition("/")[0]


def _busy() -> Fault:
    return Fault("busy", "The server is busy, try again.")


def commit_groups(jobs: list[Job]) -> list[list[Job]]:
    """Return the jobs in the groups they commit in, in order: an exclusive one alone, its neighbours together."""
    groups: list[list[Job]] = []
    for job in jobs:
        if job.exclusive or not groups or groups[-1][0].exclusive:
            groups.append([job])
        else:
            groups[-1].append(job)
    return groups


def merge_runs(group: Sequence[Job]) -> list[list[Job]]:
    """Return the jobs in runs of neighbours that can be merged, in order; any other job is a run of its own."""
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

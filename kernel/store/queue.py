"""Queues of calls and the threads that serve them, the groups in which writes commit, and the delivery of answers."""

import asyncio
import math
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from heapq import nsmallest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct

from kernel.core.errors import Fault
from kernel.core.ids import now_ns
from kernel.core.memory import until_memory, wait_for_memory
from kernel.store.audit import EarlierSlices
from kernel.store.context import CallContext
from kernel.store.engine import ReadConnection
from kernel.store.long_work import MORE
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    from kernel.embed.model import Embedding

# Of the call that is being submitted, for the jobs it queues; None of a call that is not traced.
current_stages: ContextVar["Stages | None"] = ContextVar("current_stages", default=None)


class Stages(list[tuple[str, int]]):
    """The name of each stage so far, and when it ended, in nanoseconds since 1970; each begins where the last ended."""

    def end(self, name: str) -> None:
        self.append((name, now_ns()))


R = TypeVar("R")
Work = Callable[[Tx], Any]
Deliver = Callable[["Job"], None]
Texts = Sequence[str] | Callable[[], Sequence[str]]
_GATHER_SECONDS = 0.001  # in which a busy event loop takes ten requests; with half of it fewer callers gather
GROUP_BYTES = 32 * 1024  # of the calls of a group that is more than one: some milliseconds of work
_CALL_BYTES = 256  # a call costs as much as so many bytes of it
_MOST_CHARGED = 100  # milliseconds of a turn: so a caller waits for a hundred turns of others at most
_LATELY_SECONDS = 0.25
_CROWD = 100  # of the dear calls of a caller that wait: its cheap calls wait their turn beside them
_LEAD_SECONDS = 0.25  # that the first of them has waited longer than a cheap call before that waits for it
_MOST_IDLE = 1000  # idle callers whose time is kept
_NOTHING: Mapping[Any, Any] = MappingProxyType({})  # of the calls that prepare nothing, nearly all
interrupt_lock = threading.Lock()  # held so that an interrupt cannot hit the connection's next call


class Merge(Struct, frozen=True):
    """A call that can share statements with its neighbours: `batch(tx, requests)` gives a value or Fault for each."""

    batch: Callable[[Tx, Sequence[Any]], list[Any]]
    request: object


class Job:
    """One call in a queue; a job that is cancelled before it starts never runs.

    `texts`, or what they return, are embedded before the write lock is taken, an `exclusive` call has a transaction of
    its own, the changes of an `audited` call are recorded in the audit, and those of an `undoable` one kept for undo.
    `earlier` is the audit's state of the slices of the call that have committed, `size` the bytes of the call, and
    `stages` are those of a call that is traced. `preparing` are the steps that give the `vectors` of long texts and
    the values `derived` from them, before the transaction.
    """

    __slots__ = (
        "answer",
        "audited",
        "caller",
        "cancelled",
        "context",
        "deliver",
        "derived",
        "earlier",
        "exclusive",
        "loop",
        "merge",
        "preparing",
        "queued",
        "running",
        "size",
        "stages",
        "texts",
        "undoable",
        "vectors",
        "work",
    )

    def __init__(
        self, work: Work, context: CallContext, deliver: Deliver, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self.work = work
        self.context = context
        self.caller = key_of(context)
        self.deliver = deliver
        self.loop = loop
        self.queued = 0.0
        self.stages: Stages | None = None
        self.size = 0
        self.exclusive = False
        self.audited = False
        self.undoable = False
        self.texts: Texts = ()
        self.merge: Merge | None = None
        self.earlier: EarlierSlices | None = None
        self.preparing: Iterator[None] | None = None
        self.vectors: Mapping[str, Embedding] = _NOTHING
        self.derived: Mapping[tuple[Callable[[str], object], str], object] = _NOTHING
        self.cancelled = False
        self.running: ReadConnection | None = None
        self.answer: Any = None

    def cancel(self) -> None:
        """Drops the job if it has not started; interrupts it if it is a running read."""
        self.cancelled = True
        with interrupt_lock:
            if self.running is not None:
                self.running.interrupt()


class CallQueue:
    """The jobs that wait for threads of a pool; none waits longer than `max_wait` seconds.

    The caller with the least processor time is next, so a short call waits for at most one long call of another caller.
    Time counts in whole milliseconds, at least one a turn, so equal callers take turns. A new caller begins with the
    time of the caller that is served: idle time is not saved up.
    `run` gets up to `group` jobs. Up to `at_once` groups run beside each other, and up to `each()` of a caller. A job
    whose caller has gone is dropped, and one that has waited too long is answered with Fault("busy"); work that
    nobody waits for is refused while another job has. While a crowd of its caller waits in the `dearer` queue, a job is
    begun in the order of arrival beside it: in a closed loop nearly all callers would wait there for seconds else.
    """

    def __init__(
        self,
        pool: "ThreadPool",
        run: Callable[[list[Job]], None],
        *,
        group: int = 1,
        at_once: int = 1,
        each: Callable[[], int] | None = None,
        max_wait: float = math.inf,
        dearer: "CallQueue | None" = None,
    ) -> None:
        self.waiting = 0  # the number of jobs that wait
        self.taken = 0  # the jobs that no longer wait, and how many seconds they have
        self.waited = 0.0
        self.run = run
        self._pool = pool
        self._group = group
        self._at_once = at_once
        self._each = each or (lambda: at_once)
        self._max_wait = max_wait
        self._dearer = dearer
        self._cheaper: CallQueue | None = None
        if dearer is not None:
            dearer._cheaper = self
        self._lines: OrderedDict[str, deque[Job]] = OrderedDict()  # of callers with equal time the first is next
        self._had: dict[str, int] = {}  # milliseconds, by caller
        self._turn = 0  # the time, in milliseconds, of the caller whose turn began last
        self._running: Counter[str] = Counter()  # by caller
        self._groups = 0  # that run
        self._announced = self._stopped = False
        self._ended = threading.Event()
        self._gathering = 0  # the number of jobs that the next group waits for
        self._gathered = threading.Event()
        with pool.lock:
            pool.queues += 1

    @property
    def oldest(self) -> float:
        """Return the seconds that the oldest job has waited."""
        with self._pool.lock:
            since = min((line[0].queued for line in self._lines.values()), default=math.inf)
        return max(0.0, time.monotonic() - since)

    def put(self, job: Job) -> None:
        """Queues a job; raises Fault("busy") if the queue has stopped, or for work that is not waited for."""
        job.queued = time.monotonic()
        with self._pool.lock:
            line = self._lines.get(job.caller, ())
            is_late = job.deliver is discard and line and job.queued - line[0].queued > self._max_wait
            if self._stopped or is_late:
                raise _busy()
            # A caller of whom nothing waits goes on, whatever others have sent.
            if job.size and line and self._pool.bytes + job.size > self._pool.most_bytes:
                raise _busy()
            self._append(job)

    def gather(self, callers: int) -> None:
        """Wait until the callers answered in the last group have sent their next jobs too, or send none for a moment.

        Else two halves of the callers would commit in turns: twice as many commits, each beside the work of the event
        loop, for which it waits at every statement.
        """
        if callers == 1:
            return
        with self._pool.lock:
            self._gathering = min(self._group, self.waiting + callers)
            self._gathered.clear()
        before = -1
        while before < self.waiting < self._gathering and not self._stopped:
            before = self.waiting
            self._gathered.wait(_GATHER_SECONDS)

    def put_back(self, job: Job, *, first: bool = False) -> bool:
        """Queues a job that has more to do behind all others, or before those of its caller; False if the queue has
        stopped.
        """
        with self._pool.lock:
            if not self._stopped:
                job.queued = time.monotonic()
                self._append(job, first=first)
            return not self._stopped

    def shorter_wait(self, job: Job) -> bool:
        """Return whether another caller waits with a short job, while this long one runs and no other begins."""
        lines = tuple(self._lines.items())
        return any(caller != job.caller and line[0].size <= GROUP_BYTES for caller, line in lines)

    def stop(self) -> None:
        """Finishes the queued jobs, and refuses others."""
        with self._pool.lock:
            self._stopped = True
            self._note_end()
        self._ended.wait()
        self._pool.leave()

    @contextmanager
    def while_idle(self) -> Generator[bool]:
        """Yields whether no job runs; none begins until the end of the block."""
        with self._pool.lock:
            yield not self._groups

    def begin(self, jobs: list[Job], late: list[Job]) -> None:
        """Adds the next jobs, and those that have waited too long, to these lists; the pool holds the lock.

        Each caller in its turn has an equal part, whose jobs stay neighbours to be merged. A job that would make the
        group too long waits for the next: so the others do not wait for it. Raises MemoryError only if it has taken no
        job.
        """
        now = time.monotonic()
        callers = deque(nsmallest(self._group, self._free_callers(), self._had.__getitem__))
        try:
            self._take_from(callers, now, jobs, late)
        except MemoryError:
            if not (jobs or late):
                raise
        if jobs:
            until_memory(self._note_begin, jobs[0].caller)
        self._announced = False
        until_memory(self._announce)

    def _take_from(self, callers: deque[str], now: float, jobs: list[Job], late: list[Job]) -> None:
        size = 0
        part = max(1, self._group // max(1, len(self._lines)))
        while len(jobs) < self._group and callers:
            caller = callers.popleft()
            line = self._lines[caller]
            if jobs and size + line[0].size > GROUP_BYTES:
                return
            try:
                for _ in range(min(part, len(line), self._group - len(jobs))):
                    if jobs and size + line[0].size > GROUP_BYTES:
                        break
                    size += line[0].size
                    self._take(line, now, jobs, late)
            finally:
                if line:
                    self._lines.move_to_end(caller)
                else:
                    del self._lines[caller]
            if line:
                callers.append(caller)

    def _take(self, line: deque[Job], now: float, jobs: list[Job], late: list[Job]) -> None:
        """Moves the first job of a line to those that run, or that have waited too long, unless it is dropped."""
        job = line[0]
        waiting, taken, waited = self.waiting - 1, self.taken + 1, self.waited + now - job.queued
        held = self._pool.bytes
        if now - job.queued > self._max_wait and job.earlier is None and job.deliver is not discard:
            held -= job.size
            late.append(job)
        elif not job.cancelled or job.earlier is not None:
            jobs.append(job)
        else:
            held -= job.size
        line.popleft()
        self.waiting, self.taken, self.waited, self._pool.bytes = waiting, taken, waited, held
        if job.stages is not None:
            job.stages.end("queue")

    def _note_begin(self, caller: str) -> None:
        self._running[caller] += 1
        self._groups += 1
        self._turn = max(self._turn, self._had[caller])

    def end(self, jobs: Sequence[Job], seconds: float) -> None:
        """Notes that a group has run for so much processor time; the pool holds the lock.

        Raises MemoryError only if it has noted nothing.
        """
        caller, held = jobs[0].caller, self._pool.bytes - sum([job.size for job in jobs])
        with suppress(MemoryError):
            self._charge(jobs, seconds)
        self._pool.bytes = held
        self._groups -= 1
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]

    def go_on(self) -> None:
        """Lets what has waited for the end of a group begin; the pool holds the lock."""
        self._announce()
        self._note_end()
        if self._cheaper is not None and self._cheaper.waiting:
            self._cheaper.reconsider()

    def reconsider(self) -> None:
        """Begins a job that may have waited for the dearer queue; the pool of that holds its lock."""
        with self._pool.lock:
            if self._announce():
                self._pool.wake()

    def _charge(self, jobs: Sequence[Job], seconds: float) -> None:
        """Counts the time of a group for its callers, by the bytes of their calls."""
        sizes: Counter[str] = Counter()
        for job in jobs:
            sizes[job.caller] += job.size + _CALL_BYTES
        each = 1000 * seconds / sizes.total()
        for caller, size in sizes.items():
            # Another thread may have forgotten the time of a caller of whom nothing waits any more.
            self._had[caller] = self._had.get(caller, self._turn) + min(max(1, int(size * each)), _MOST_CHARGED)
        if len(self._had) > len(self._lines) + _MOST_IDLE:
            self._had = {caller: had for caller, had in self._had.items() if had > self._turn or caller in self._lines}

    def _append(self, job: Job, *, first: bool = False) -> None:
        """Queues a job, and begins what may begin; raises MemoryError only if nothing is changed."""
        caller, waiting, held = job.caller, self.waiting + 1, self._pool.bytes + job.size
        line = self._lines.get(caller) or deque[Job]()
        line.appendleft(job) if first else line.append(job)
        if caller not in self._lines:
            self._had[caller] = max(self._turn, self._had.get(caller, 0))
            self._lines[caller] = line
        self.waiting, self._pool.bytes = waiting, held
        until_memory(self._note_job)

    def _note_job(self) -> None:
        if self.waiting == self._gathering:
            self._gathered.set()
        if self._announce():
            self._pool.wake()

    def _announce(self) -> bool:
        """Announces the queue if a job may begin; returns whether it did."""
        if self._announced or self._groups >= self._at_once or next(self._free_callers(), None) is None:
            return False
        self._pool.announce(self)
        self._announced = True
        return True

    def _free_callers(self) -> Iterator[str]:
        each = self._each()
        return (
            caller
            for caller, line in self._lines.items()
            if self._running[caller] < each and not (self._dearer and self._dearer.has_crowd_before(line[0], caller))
        )

    def has_crowd_before(self, job: Job, caller: str) -> bool:
        """Return whether a crowd of the caller waits, the first job of it for longer than that of another queue."""
        line = self._lines.get(caller, ())  # without the lock of this pool: the first may just be taken
        return len(line) > _CROWD and job.queued - line[0].queued > _LEAD_SECONDS

    def _note_end(self) -> None:
        if self._stopped and not (self.waiting or self._groups):
            self._ended.set()


class ThreadPool:
    """Threads that do the jobs of several queues, each in its turn; they begin when they are needed, and end with the
    last queue.

    The thread that has been idle for the shortest time goes on: its data are still in the caches. None begins a job
    within `head_start` seconds after another one has begun the job that it still runs. The calls that wait or run hold
    `bytes`, from `most_bytes` on a caller of whom some wait may not add to them.
    """

    def __init__(self, name: str, most: int, head_start: float = 0.0, most_bytes: float = math.inf) -> None:
        self.lock = threading.Lock()  # of the queues too
        self.queues = 0
        self.bytes = 0
        self.most_bytes = most_bytes
        self._name = name
        self._most = most
        self._head_start = head_start
        self._begun: dict[int, float] = {}  # when each thread that runs a job began it
        self._ready: deque[CallQueue] = deque()
        self._idle: list[threading.Lock] = []  # of the threads that wait, each for its own
        self._pausing = False  # one thread waits for the end of a head start
        self._threads: list[threading.Thread] = []

    def announce(self, queue: CallQueue) -> None:
        """Notes that a queue has a job that may begin; the caller holds the lock."""
        self._ready.append(queue)

    def wake(self) -> None:
        """Wakes or begins a thread for the queue that is ready first; the caller holds the lock."""
        if not self._ready or self._pausing:
            return
        if self._idle:
            self._idle.pop().release()
        elif len(self._threads) < self._most:
            self._begin()

    def begin_all(self) -> None:
        """Begins every thread: there may be no memory for one later, and its start would keep all others waiting."""
        with self.lock:
            while len(self._threads) < self._most and self._begin():
                pass

    def leave(self) -> None:
        """Notes that a queue has stopped; after the last one the threads end."""
        with self.lock:
            self.queues -= 1
            if self.queues:
                return
            ending, self._threads = self._threads, []
            while self._idle:
                self._idle.pop().release()
        for thread in ending:
            thread.join()

    def _begin(self) -> bool:
        """Begins a thread; False if the system gives no other, and those there are do its jobs."""
        thread = threading.Thread(target=self._serve, name=f"{self._name}-{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except (MemoryError, RuntimeError):
            if not self._threads:
                raise
            return False
        self._threads.append(thread)
        return True

    def _serve(self) -> None:
        own, turn = threading.Lock(), _Turn()
        own.acquire()
        while True:
            try:
                if not self._next(own, turn):
                    return
            except MemoryError:  # nothing was taken
                wait_for_memory()
            else:
                turn.run()

    def _next(self, own: threading.Lock, turn: "_Turn") -> bool:
        """Ends the turn of this thread and takes its next, waiting for it; False once all queues have stopped."""
        pausing = False
        while True:
            with self.lock:
                if pausing:
                    pausing = self._pausing = False
                delay = self._take(turn)
                if turn.queue is not None:
                    return True
                if not (self._ready or self.queues):
                    return False
                if self._ready and not self._pausing:
                    pausing = self._pausing = True
                else:
                    self._idle.append(own)
            if pausing:
                time.sleep(delay)
            else:
                own.acquire()

    def _take(self, turn: "_Turn") -> float:
        """Ends the turn of a thread and takes its next, so that no other thread wakes up for nothing.

        Returns the seconds to the end of the head start; without a turn that may begin now the thread has none. Raises
        MemoryError only between the two.
        """
        now, spent = time.monotonic(), time.thread_time()
        turn.end(spent)
        self._begun.pop(threading.get_ident(), None)
        delay = max(self._begun.values(), default=-math.inf) + self._head_start - now
        if self._ready and delay <= 0:
            self._begun[threading.get_ident()] = now
            queue = self._ready[0]
            turn.begin(queue, spent)
            self._ready.popleft()
            self.wake()
        return delay


class _Turn:
    """The jobs of a queue that a thread runs, and those that have waited too long; a thread keeps it, since there may
    be no memory for another.
    """

    __slots__ = ("_began", "_jobs", "_late", "queue")

    def __init__(self) -> None:
        self.queue: CallQueue | None = None
        self._jobs: list[Job] = []
        self._late: list[Job] = []
        self._began = 0.0  # processor time of the thread

    def begin(self, queue: CallQueue, now: float) -> None:
        """Takes the next jobs of a queue; the pool holds the lock."""
        self._jobs, self._late = [], []
        queue.begin(self._jobs, self._late)
        self.queue, self._began = queue, now

    def run(self) -> None:
        if self._late:
            until_memory(_refuse, self._late)
        if self.queue is not None and self._jobs:
            try:
                self.queue.run(self._jobs)
            except MemoryError:
                until_memory(self._answer_rest)

    def end(self, now: float) -> None:
        """Ends the turn, if there is one; the pool holds the lock."""
        queue = self.queue
        if queue is None:
            return
        if self._jobs:
            queue.end(self._jobs, now - self._began)
            self._jobs = self._late = _NO_JOBS
        queue.go_on()
        self.queue = None

    def _answer_rest(self) -> None:
        """Answers the jobs, those without an answer with a refusal; one with more to do waits in the queue."""
        fail_all([job for job in self._jobs if job.answer is None], _busy())
        answer_all([job for job in self._jobs if job.answer is not MORE])


class Callers:
    """Who has called of late; a queue may never hold the calls of two callers at once, as short as they are."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._last: CallContext | None = None
        self._changed = -math.inf

    def note(self, context: CallContext) -> None:
        if context is not self._last:
            if self._last is not None and key_of(context) != key_of(self._last):
                self._changed = time.monotonic()
            self._last = context

    def threads_of_each(self) -> int:
        """Return all threads for the only caller; one of several leaves half of them to the others."""
        are_several = time.monotonic() - self._changed < _LATELY_SECONDS
        return max(1, self._threads // 2) if are_several else self._threads


def key_of(context: CallContext) -> str:
    """Return the key of a caller; behind it clients give themselves any name."""
    return context.actor.partition("/")[0]


_NO_JOBS: list[Job] = []


def _refuse(jobs: Sequence[Job]) -> None:
    fail_all(jobs, _busy())
    answer_all(jobs)


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


def end_stage(jobs: Sequence[Job], name: str) -> None:
    """Notes for the calls among these that are traced that a stage has ended."""
    for job in jobs:
        if job.stages is not None:
            job.stages.end(name)


def fail_all(jobs: Sequence[Job], fault: Fault) -> None:
    for job in jobs:
        job.answer = fault


def answer_all(jobs: Sequence[Job]) -> None:
    """Delivers the answers, those for an event loop with one wake-up of that loop."""
    by_loop: dict[asyncio.AbstractEventLoop | None, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs_of_loop in by_loop.items():
        if loop is None:
            _deliver(jobs_of_loop)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(_deliver, jobs_of_loop)


def _deliver(jobs: Sequence[Job]) -> None:
    for job in jobs:
        until_memory(job.deliver, job)
        # The callback often holds the job: dropping it here breaks a cycle that only the collector would free.
        job.deliver = discard


def discard(_job: Job) -> None:
    """Ignores the answer of a job."""


def wait(queue: CallQueue, work: Callable[[Tx], R], context: CallContext, *, exclusive: bool = False) -> R:
    """Queues `work` and blocks the calling thread until it is answered; raises the Fault."""
    answered = threading.Event()
    job = Job(work, context, lambda _job: answered.set())
    job.exclusive = exclusive
    queue.put(job)
    answered.wait()
    if isinstance(job.answer, Fault):
        raise job.answer
    return cast("R", job.answer)

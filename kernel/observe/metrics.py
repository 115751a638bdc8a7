"""Counters and histograms of calls, and the state of the stores, in the text format of Prometheus."""

import os
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import msgspec

from kernel.calls.dispatch import Answer, Call, OnOutcome
from kernel.core.ids import utc_now
from kernel.operations.backup import BackupLoop, time_of_newest
from kernel.store.engine import DatabaseUse
from kernel.store.store import Load

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
# Upper bounds of the buckets of durations; longer calls are in a last bucket.
SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_QUICK = SECONDS[0]
_STARTED = datetime.fromisoformat(utc_now()).timestamp()
_SHARED = frozenset({"file_bytes", "wal_bytes", "oldest", "newest", "lag"})  # of a tenant, of backups, of a replica
_REPLICA_STATES = ("", "standby", "behind", "away")
_NONE: Mapping[str, int] = MappingProxyType({})

Labels = Mapping[str, str]


class Sample(NamedTuple):
    suffix: str
    labels: Labels
    value: float


class Histogram:
    """Durations and outcomes of the calls of one tool.

    For the event loop's thread only. Each call pays for `observe`, so everything else is computed at a scrape.
    """

    __slots__ = ("_other", "buckets", "dialect", "seconds")

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self._other: dict[str, int] = {}
        self.seconds = 0.0
        self.buckets = [0] * (len(SECONDS) + 1)

    def observe(self, outcome: str, seconds: float, _answer: Answer | None = None) -> None:
        self.buckets[0 if seconds <= _QUICK else bisect_left(SECONDS, seconds)] += 1
        self.seconds += seconds
        if outcome != "ok":
            self._other[outcome] = self._other.get(outcome, 0) + 1

    @property
    def outcomes(self) -> Mapping[str, int]:
        ok = sum(self.buckets) - sum(self._other.values())
        return {**self._other, "ok": ok} if ok else self._other


class ToolCalls(NamedTuple):
    dialect: str
    outcomes: dict[str, int]
    buckets: list[int]
    seconds: float


class Backups(NamedTuple):
    """Scheduled backups: when the newest was begun, 0 for none, and how many failed in this process."""

    newest: float
    failures: int

    @classmethod
    def of(cls, loop: BackupLoop | None) -> Self | None:
        return cls(time_of_newest(loop.schedule.to), loop.failures) if loop else None


class Snapshot(NamedTuple):
    """The counters of a process: calls by tool, stores by tenant, open connections, and its own use of the machine.

    `resident` and `files` are 0 if the system does not tell them. `started` is when the process was, in seconds since
    1970, `statuses` counts responses, `opened` and `closed` count tenants, and `database` is None for files.
    """

    calls: dict[str, ToolCalls]
    loads: dict[str, Load]
    connections: int
    processor: float
    resident: int
    files: int
    backups: Backups | None = None
    started: float = _STARTED
    statuses: Mapping[int, int] = MappingProxyType({})
    opened: int = 0
    closed: int = 0
    database: DatabaseUse | None = None

    @classmethod
    def take(
        cls,
        registry: "MetricsRegistry",
        loads: Mapping[str, Load],
        connections: int,
        backups: Backups | None = None,
        database: DatabaseUse | None = None,
    ) -> Self:
        from kernel.http.uvicorn_protocol import STATUSES  # for a server alone: uvicorn is slow to import

        resident, files = _resident_and_files()
        return cls(
            registry.calls(),
            dict(loads),
            connections,
            time.process_time(),
            resident,
            files,
            backups,
            statuses=dict(STATUSES),
            opened=registry.opened,
            closed=registry.closed,
            database=database,
        )

    def plus(self, summand: Self) -> Self:
        """Return the sums of both processes; they share the files of a tenant."""
        return _sum(self, summand)

    def counters(self) -> Self:
        """Return the numbers that only grow, to be added to those of the process that takes its place."""
        idle = {"writes": 0, "reads": 0, "oldest": (0.0, 0.0), "file_bytes": 0, "wal_bytes": 0, "is_open": False}
        return self._replace(
            loads={tenant: load._replace(**idle) for tenant, load in self.loads.items()},
            connections=0,
            resident=0,
            files=0,
            database=self.database and self.database._replace(used=0, most=0, waiting=0, replica="", lag=0),
        )


def kept_counters(text: bytes) -> Snapshot | None:
    """Return the counters of a process that has ended, from its encoded snapshot; None for an empty text."""
    return msgspec.json.decode(text, type=Snapshot).counters() if text else None


def _sum(left: Any, right: Any, name: str = "") -> Any:
    """Return two values of the same type added, part by part; of some parts the larger, which both processes share."""
    if left is None or right is None:
        return left or right
    if name == "replica":
        return max(left, right, key=_REPLICA_STATES.index)
    if name == "started":
        return min(left, right)
    if hasattr(left, "keys"):
        both = left.keys() & right.keys()
        return {**left, **right, **{key: _sum(left[key], right[key]) for key in both}}
    if isinstance(left, bool | str):
        return max(left, right)
    if hasattr(left, "__len__"):
        parts = map(_sum, left, right, getattr(left, "_fields", [name] * len(left)))
        return type(left)(*parts) if hasattr(left, "_fields") else type(left)(parts)
    return max(left, right) if name in _SHARED else left + right


class MetricsRegistry:
    """A histogram for each tool that was called."""

    def __init__(self) -> None:
        self.opened, self.closed = 0, 0  # tenants
        self._by_tool: dict[str, Histogram] = {}

    def observe(self, call: Call) -> OnOutcome:
        name = call.entry.tool.name
        histogram = self._by_tool.get(name)
        if histogram is None:
            histogram = self._by_tool[name] = Histogram(call.entry.dialect.name)
        return histogram.observe

    def calls(self) -> dict[str, ToolCalls]:
        return {
            tool: ToolCalls(counter.dialect, dict(counter.outcomes), [*counter.buckets], counter.seconds)
            for tool, counter in self._by_tool.items()
        }


def render(snapshot: Snapshot, info: Labels, memories: Mapping[str, int] = _NONE) -> bytes:
    """Return all metrics: calls, stores by tenant, the server and its processes; `memories` are counted by tenant."""
    open_tenants = sum(load.is_open for load in snapshot.loads.values())
    statuses = [Sample("", {"status": str(status)}, count) for status, count in sorted(snapshot.statuses.items())]
    parts = [
        _info(info),
        *_calls(snapshot.calls),
        *_stores(snapshot.loads),
        _memories(memories),
        _family("quipu_http_responses_total", "counter", "Responses by HTTP status.", statuses),
        _single("quipu_connections", "gauge", "Connections that are open.", snapshot.connections),
        _single("quipu_open_tenants", "gauge", "Tenants whose stores are open.", open_tenants),
        _single("quipu_tenants_opened_total", "counter", "Openings of tenants.", snapshot.opened),
        _single("quipu_tenants_closed_total", "counter", "Closings of tenants.", snapshot.closed),
        *_database(snapshot.database),
        *_backups(snapshot.backups),
        *_process(snapshot),
    ]
    return "".join(parts).encode()


def render_tenant(loads: Mapping[str, Load], info: Labels, memories: Mapping[str, int] = _NONE) -> bytes:
    """Return the metrics of one tenant, if it is open: they tell nothing of others, nor of the machine."""
    return "".join([_info(info), *((*_stores(loads), _memories(memories)) if loads else ())]).encode()


def _memories(memories: Mapping[str, int]) -> str:
    samples = [Sample("", {"tenant": tenant}, count) for tenant, count in memories.items()]
    return _family("quipu_memories", "gauge", "Memories that are indexed.", samples)


def _database(use: DatabaseUse | None) -> Iterator[str]:
    if use is None:
        return
    yield _single("quipu_database_connections", "gauge", "Connections to the database in use.", use.used)
    yield _single("quipu_database_connections_limit", "gauge", "Connections that may be in use.", use.most)
    yield _single("quipu_database_connections_waiting", "gauge", "Callers that wait for a connection.", use.waiting)
    yield _single("quipu_database_waits_total", "counter", "Waits for an answer of the database.", use.trips)
    yield _single("quipu_database_seconds_total", "counter", "Seconds of these waits.", use.seconds)
    if not use.replica:
        return
    states = [Sample("", {"state": state}, state == use.replica) for state in _REPLICA_STATES if state]
    yield _family("quipu_replica_state", "gauge", "Whether the replica answers, is behind or is away.", states)
    yield _single("quipu_replica_lag_bytes", "gauge", "Log received and not replayed by the replica.", use.lag)
    past = use.passed_over
    yield _single("quipu_replica_passed_over_total", "counter", "Reads that went past the replica.", past)


def _info(labels: Labels) -> str:
    return _family("quipu_info", "gauge", "What is running.", [Sample("", labels, 1)])


def _calls(calls: Mapping[str, ToolCalls]) -> Iterator[str]:
    pairs = [({"dialect": counter.dialect, "tool": tool}, counter) for tool, counter in calls.items()]
    counts = [
        Sample("", {**labels, "outcome": outcome}, count)
        for labels, counter in pairs
        for outcome, count in sorted(counter.outcomes.items())
    ]
    took = [
        sample for labels, counter in pairs for sample in _histogram(labels, SECONDS, counter.buckets, counter.seconds)
    ]
    yield _family("quipu_calls_total", "counter", "Tool calls by how they came out.", counts)
    yield _family("quipu_call_duration_seconds", "histogram", "Seconds from arguments to answer.", took)


def _stores(loads: Mapping[str, Load]) -> Iterator[str]:
    def by_tenant(read: str) -> list[Sample]:
        return [Sample("", {"tenant": tenant}, getattr(load, read)) for tenant, load in loads.items()]

    def by_queue(suffix: str, of_queues: Callable[[Load], tuple[float, float]]) -> list[Sample]:
        return [
            Sample(suffix, {"tenant": tenant, "queue": queue}, value)
            for tenant, load in loads.items()
            for queue, value in zip(("write", "read"), of_queues(load), strict=True)
        ]

    sizes = [float(1 << power) for power in range(len(next(iter(loads.values())).groups) - 1)]
    groups = [
        sample
        for tenant, load in loads.items()
        for sample in _histogram({"tenant": tenant}, sizes, load.groups, load.calls)
    ]
    waiting = by_queue("", lambda load: (load.writes, load.reads))
    yield _family("quipu_queue_calls", "gauge", "Calls that wait.", waiting)
    waits = [*by_queue("_sum", lambda load: load.waited), *by_queue("_count", lambda load: load.taken)]
    yield _family("quipu_queue_wait_seconds", "summary", "Seconds in a queue, before the work.", waits)
    ages = by_queue("", lambda load: load.oldest)
    yield _family("quipu_queue_oldest_seconds", "gauge", "Seconds that the oldest waiting call has waited.", ages)
    yield _family("quipu_commit_calls", "histogram", "Calls in one commit.", groups)
    yield _family("quipu_wal_bytes", "gauge", "Size of the write-ahead log.", by_tenant("wal_bytes"))
    yield _family("quipu_database_bytes", "gauge", "Size of the database.", by_tenant("file_bytes"))


def _backups(backups: Backups | None) -> Iterator[str]:
    if backups is None:
        return
    yield _single("quipu_backup_timestamp_seconds", "gauge", "When the newest backup was begun.", backups.newest)
    yield _single("quipu_backup_failures_total", "counter", "Scheduled backups that failed.", backups.failures)


def _process(snapshot: Snapshot) -> Iterator[str]:
    yield _single("process_start_time_seconds", "gauge", "When the process was started.", snapshot.started)
    yield _single("process_cpu_seconds_total", "counter", "Processor time.", snapshot.processor)
    if snapshot.resident:
        yield _single("process_resident_memory_bytes", "gauge", "Resident memory.", snapshot.resident)
        yield _single("process_open_fds", "gauge", "Open file descriptors.", snapshot.files)


def _resident_and_files() -> tuple[int, int]:
    if sys.platform == "linux":
        with suppress(OSError, ValueError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE"), len(list(Path("/proc/self/fd").iterdir()))
    return 0, 0


def _histogram(labels: Labels, bounds: Iterable[float], counts: Iterable[int], total: float) -> Iterator[Sample]:
    running = 0
    for upper, count in zip((*(f"{bound:g}" for bound in bounds), "+Inf"), counts, strict=True):
        running += count
        yield Sample("_bucket", {**labels, "le": upper}, running)
    yield Sample("_sum", labels, total)
    yield Sample("_count", labels, running)


def _single(name: str, kind: str, about: str, value: float) -> str:
    return _family(name, kind, about, [Sample("", {}, value)])


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}\n# TYPE {name} {kind}\n"]
    for sample in samples:
        labels = ",".join(f'{label}="{value.translate(_ESCAPED)}"' for label, value in sample.labels.items())
        lines.append(f"{name}{sample.suffix}{'{' + labels + '}' if labels else ''} {sample.value}\n")
    return "".join(lines)

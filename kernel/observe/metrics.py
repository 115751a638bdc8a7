"""Counters and histograms of calls, and the state of the stores, in the text format of Prometheus."""

import os
import sys
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from kernel.calls.call import Answer, Call, OnOutcome, ToolEntry
from kernel.operations.scheduled_backup import BackupLoop, time_of_newest
from kernel.store.store import Load

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
# Upper bounds of the buckets of durations; longer calls are in a last bucket.
SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_QUICK = SECONDS[0]

Labels = Mapping[str, str]


class Sample(NamedTuple):
    """One sample: the suffix of the family's name, the labels, the value."""

    suffix: str
    labels: Labels
    value: float


class Histogram:
    """Durations and outcomes of the calls of one tool.

    For the event loop's thread only. Each call pays for `observe`, so everything else is computed at a scrape.
    """

    __slots__ = ("_other", "buckets", "labels", "seconds")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self._other: dict[str, int] = {}
        self.seconds = 0.0
        self.buckets = [0] * (len(SECONDS) + 1)

    def observe(self, outcome: str, seconds: float, _answer: Answer | None = None) -> None:
        """Counts one call."""
        self.buckets[0 if seconds <= _QUICK else bisect_left(SECONDS, seconds)] += 1
        self.seconds += seconds
        if outcome != "ok":
            self._other[outcome] = self._other.get(outcome, 0) + 1

    @property
    def outcomes(self) -> Mapping[str, int]:
        """Return the number of calls by outcome."""
        done = sum(self.buckets) - sum(self._other.values())
        return {**self._other, "ok": done} if done else self._other


class ToolCalls(NamedTuple):
    """The calls of one tool."""

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
        """Return those of a schedule; None without one."""
        return loop and cls(time_of_newest(loop.schedule.to), loop.failures)


class Snapshot(NamedTuple):
    """The counters of a process: calls by tool, stores by tenant, open connections, and its own use of the machine.

    `resident` and `files` are 0 if the system does not tell them.
    """

    calls: dict[str, ToolCalls]
    loads: dict[str, Load]
    connections: int
    processor: float
    resident: int
    files: int
    backups: Backups | None = None

    @classmethod
    def take(
        cls, registry: "MetricsRegistry", loads: Mapping[str, Load], connections: int, backups: Backups | None = None
    ) -> Self:
        """Return the present counters of this process."""
        resident, files = _resident_and_files()
        return cls(registry.calls(), dict(loads), connections, time.process_time(), resident, files, backups)

    def plus(self, other: Self) -> Self:
        """Return the sums of both processes; they share the files of a tenant."""
        calls, loads = dict(self.calls), dict(self.loads)
        for tool, more in other.calls.items():
            calls[tool] = _sum_of_calls(calls[tool], more) if tool in calls else more
        for tenant, load in other.loads.items():
            loads[tenant] = _sum_of_loads(loads[tenant], load) if tenant in loads else load
        return type(self)(
            calls,
            loads,
            self.connections + other.connections,
            self.processor + other.processor,
            self.resident + other.resident,
            self.files + other.files,
            _sum_of_backups(self.backups, other.backups),
        )


def _sum_of_calls(one: ToolCalls, other: ToolCalls) -> ToolCalls:
    outcomes = {name: one.outcomes.get(name, 0) + other.outcomes.get(name, 0) for name in one.outcomes | other.outcomes}
    return ToolCalls(one.dialect, outcomes, _sums(one.buckets, other.buckets), one.seconds + other.seconds)


def _sum_of_loads(one: Load, other: Load) -> Load:
    return Load(
        writes=one.writes + other.writes,
        reads=one.reads + other.reads,
        write_limit=one.write_limit + other.write_limit,
        read_limit=one.read_limit + other.read_limit,
        groups=tuple(_sums(one.groups, other.groups)),
        calls=one.calls + other.calls,
        file_bytes=max(one.file_bytes, other.file_bytes),
        wal_bytes=max(one.wal_bytes, other.wal_bytes),
    )


def _sum_of_backups(one: Backups | None, other: Backups | None) -> Backups | None:
    if one is None or other is None:
        return one or other
    return Backups(max(one.newest, other.newest), one.failures + other.failures)


def _sums(one: Iterable[int], other: Iterable[int]) -> list[int]:
    return [left + right for left, right in zip(one, other, strict=True)]


class MetricsRegistry:
    """A histogram for each tool that was called."""

    def __init__(self) -> None:
        self._by_tool: dict[str, Histogram] = {}
        self._on_outcome: dict[str, OnOutcome] = {}

    def observe(self, call: Call) -> OnOutcome:
        """Return an observer that counts."""
        return self._on_outcome.get(call.entry.tool.name) or self._new(call.entry)

    def calls(self) -> dict[str, ToolCalls]:
        """Return all calls so far, by tool."""
        return {
            tool: ToolCalls(one.labels["dialect"], dict(one.outcomes), [*one.buckets], one.seconds)
            for tool, one in self._by_tool.items()
        }

    def _new(self, entry: ToolEntry) -> OnOutcome:
        name = entry.tool.name
        histogram = self._by_tool[name] = Histogram({"dialect": entry.dialect.name, "tool": name})
        on_outcome = self._on_outcome[name] = histogram.observe
        return on_outcome


def render(seen: Snapshot, info: Labels) -> bytes:
    """Return all metrics: calls, stores by tenant, the server and its processes."""
    parts = [
        _info(info),
        *_calls(seen.calls),
        *_stores(seen.loads),
        _family("quipu_connections", "gauge", "Connections that are open.", [Sample("", {}, seen.connections)]),
        _family("quipu_open_tenants", "gauge", "Tenants whose stores are open.", [Sample("", {}, len(seen.loads))]),
        *_backups(seen.backups),
        *_process(seen),
    ]
    return "".join(parts).encode()


def render_tenant(loads: Mapping[str, Load], info: Labels) -> bytes:
    """Return the metrics of one tenant, if it is open: they tell nothing of others, nor of the machine."""
    return "".join([_info(info), *(_stores(loads) if loads else ())]).encode()


def _info(labels: Labels) -> str:
    return _family("quipu_info", "gauge", "What is running.", [Sample("", labels, 1)])


def _calls(calls: Mapping[str, ToolCalls]) -> Iterator[str]:
    labelled = [({"dialect": one.dialect, "tool": tool}, one) for tool, one in calls.items()]
    counted = [
        Sample("", {**labels, "outcome": outcome}, count)
        for labels, one in labelled
        for outcome, count in sorted(one.outcomes.items())
    ]
    took = [sample for labels, one in labelled for sample in _histogram(labels, SECONDS, one.buckets, one.seconds)]
    yield _family("quipu_calls_total", "counter", "Tool calls by how they came out.", counted)
    yield _family("quipu_call_duration_seconds", "histogram", "Seconds from arguments to answer.", took)


def _stores(loads: Mapping[str, Load]) -> Iterator[str]:
    def by_tenant(read: str) -> list[Sample]:
        return [Sample("", {"tenant": tenant}, getattr(load, read)) for tenant, load in loads.items()]

    def by_queue(writes: str, reads: str) -> list[Sample]:
        return [
            Sample("", {"tenant": tenant, "queue": queue}, getattr(load, read))
            for tenant, load in loads.items()
            for queue, read in (("write", writes), ("read", reads))
        ]

    sizes = [float(1 << power) for power in range(len(next(iter(loads.values())).groups) - 1)]
    grouped = [
        sample
        for tenant, load in loads.items()
        for sample in _histogram({"tenant": tenant}, sizes, load.groups, load.calls)
    ]
    yield _family("quipu_queue_calls", "gauge", "Calls that wait.", by_queue("writes", "reads"))
    yield _family("quipu_queue_limit_calls", "gauge", "Calls that may wait.", by_queue("write_limit", "read_limit"))
    yield _family("quipu_commit_calls", "histogram", "Calls in one commit.", grouped)
    yield _family("quipu_wal_bytes", "gauge", "Size of the write-ahead log.", by_tenant("wal_bytes"))
    yield _family("quipu_database_bytes", "gauge", "Size of the database.", by_tenant("file_bytes"))


def _backups(seen: Backups | None) -> Iterator[str]:
    if seen is None:
        return
    newest, failures = [Sample("", {}, seen.newest)], [Sample("", {}, seen.failures)]
    yield _family("quipu_backup_timestamp_seconds", "gauge", "When the newest backup was begun.", newest)
    yield _family("quipu_backup_failures_total", "counter", "Scheduled backups that failed.", failures)


def _process(seen: Snapshot) -> Iterator[str]:
    yield _family("process_cpu_seconds_total", "counter", "Processor time.", [Sample("", {}, seen.processor)])
    if seen.resident:
        yield _family("process_resident_memory_bytes", "gauge", "Resident memory.", [Sample("", {}, seen.resident)])
        yield _family("process_open_fds", "gauge", "Open file descriptors.", [Sample("", {}, seen.files)])


def _resident_and_files() -> tuple[int, int]:
    if sys.platform != "linux":
        return 0, 0
    try:
        resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return resident, len(list(Path("/proc/self/fd").iterdir()))
    except (OSError, ValueError):
        return 0, 0


def _histogram(labels: Labels, bounds: Iterable[float], counts: Iterable[int], total: float) -> Iterator[Sample]:
    seen = 0
    for upper, count in zip((*(f"{bound:g}" for bound in bounds), "+Inf"), counts, strict=True):
        seen += count
        yield Sample("_bucket", {**labels, "le": upper}, seen)
    yield Sample("_sum", labels, total)
    yield Sample("_count", labels, seen)


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}\n# TYPE {name} {kind}\n"]
    for sample in samples:
        labels = ",".join(f'{label}="{value.translate(_ESCAPED)}"' for label, value in sample.labels.items())
        lines.append(f"{name}{sample.suffix}{'{' + labels + '}' if labels else ''} {sample.value}\n")
    return "".join(lines)

"""Counts and times of calls, and the state of the stores, in the text format of Prometheus."""

import os
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kernel.calls import OnOutcome, ToolEntry
from kernel.security.permissions import Caller
from kernel.store.store import Load

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_QUICK = _SECONDS[0]

Labels = Mapping[str, str]


class Sample(NamedTuple):
    """One line: what follows the family's name, the labels, the value."""

    suffix: str
    labels: Labels
    value: float


class Histogram:
    """The calls of one tool: how many took how long, and what became of those that were not simply done.

    It belongs to the event loop's thread, and each call pays for it: what can be worked out later is.
    """

    __slots__ = ("_other", "labels", "seconds", "within")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self._other: dict[str, int] = {}
        self.seconds = 0.0
        self.within = [0] * (len(_SECONDS) + 1)

    def note(self, outcome: str, seconds: float) -> None:
        """Counts one call."""
        self.within[0 if seconds <= _QUICK else bisect_left(_SECONDS, seconds)] += 1
        self.seconds += seconds
        if outcome != "ok":
            self._other[outcome] = self._other.get(outcome, 0) + 1

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many calls came out how."""
        done = sum(self.within) - sum(self._other.values())
        return {**self._other, "ok": done} if done else self._other


class MetricsRegistry:
    """A meter for each tool that was called."""

    def __init__(self) -> None:
        self._by_tool: dict[str, Histogram] = {}
        self._noting: dict[str, OnOutcome] = {}

    def observe(self, bound: ToolEntry, _caller: Caller) -> OnOutcome:
        """A `Watch` that counts."""
        return self._noting.get(bound.tool.name) or self._new(bound)

    def families(self) -> Iterator[str]:
        """The families of all calls so far."""
        meters = self._by_tool.values()
        calls = [
            Sample("", {**meter.labels, "outcome": outcome}, count)
            for meter in meters
            for outcome, count in sorted(meter.outcomes.items())
        ]
        took = [sample for one in meters for sample in _histogram(one.labels, _SECONDS, one.within, one.seconds)]
        yield _family("quipu_calls_total", "counter", "Tool calls by how they came out.", calls)
        yield _family("quipu_call_duration_seconds", "histogram", "Seconds from arguments to answer.", took)

    def _new(self, bound: ToolEntry) -> OnOutcome:
        name = bound.tool.name
        meter = self._by_tool[name] = Histogram({"dialect": bound.dialect.name, "tool": name})
        noting = self._noting[name] = meter.note
        return noting


def render(meters: MetricsRegistry, loads: Mapping[str, Load], info: Labels, connections: int, tenants: int) -> bytes:
    """All there is to tell: of the calls, of the stores by tenant, of the server and its process."""
    parts = [
        _family("quipu_info", "gauge", "What is running.", [Sample("", info, 1)]),
        *meters.families(),
        *_stores(loads),
        _family("quipu_connections", "gauge", "Connections that are open.", [Sample("", {}, connections)]),
        _family("quipu_open_tenants", "gauge", "Tenants whose stores are open.", [Sample("", {}, tenants)]),
        *_process(),
    ]
    return "".join(parts).encode()


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


def _process() -> Iterator[str]:
    yield _family("process_cpu_seconds_total", "counter", "Processor time.", [Sample("", {}, time.process_time())])
    try:
        resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        files = len(list(Path("/proc/self/fd").iterdir()))
    except (OSError, ValueError):
        return
    yield _family("process_resident_memory_bytes", "gauge", "Resident memory.", [Sample("", {}, resident)])
    yield _family("process_open_fds", "gauge", "Open file descriptors.", [Sample("", {}, files)])


def _histogram(labels: Labels, bounds: Iterable[float], counts: Iterable[int], total: float) -> Iterator[Sample]:
    seen = 0
    for bound, count in zip((*(f"{bound:g}" for bound in bounds), "+Inf"), counts, strict=True):
        seen += count
        yield Sample("_bucket", {**labels, "le": bound}, seen)
    yield Sample("_sum", labels, total)
    yield Sample("_count", labels, seen)


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}\n# TYPE {name} {kind}\n"]
    for sample in samples:
        labels = ",".join(f'{label}="{value.translate(_ESCAPED)}"' for label, value in sample.labels.items())
        lines.append(f"{name}{sample.suffix}{'{' + labels + '}' if labels else ''} {sample.value}\n")
    return "".join(lines)

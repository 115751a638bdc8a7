"""Time, memory and recall from a thousand memories to a million, against the naive form; writes and deletes in a large
store; a small scope beside a large one and many scopes.

`--keep FOLDER` keeps the filled stores for the next run (three gigabytes for a million memories); `--only` selects
parts; `--chart FILE` draws p50 by size.
"""

import json
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count as counted
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from kernel.core.config import Config
from kernel.core.ids import utc_now
from kernel.operations.compact import Choice, compact
from loadtests.lib import charts, corpus, http_requests, store_fixtures
from loadtests.lib.http_load import Request, drive
from loadtests.lib.recall_profile import RecallProfile
from loadtests.lib.servers import (
    Server,
    budget,
    budgets,
    finish,
    machine,
    options,
    paired,
    quipu,
    rounds,
    served,
    table,
)

_SIZES = (1_000, 10_000, 100_000, 1_000_000)
_PARTS = ("recall", "writes", "deletes", "lonely", "scopes")
_QUESTIONS = 100
_MIN_SPEEDUP = {100_000: 10.0, 1_000_000: 40.0}
_MAX_ANONYMOUS_MB = 150.0
_RECALL_SECONDS = 3.0
_SECONDS = 2.0  # of the other parts, for each side and round
_CALLERS = 64
_SMALL_SCOPE, _SMALL_SCOPE_SIZE = "the session of ten", 10
_SCOPES = 10_000
_UNUSED_NUMBER = 5_000_000  # first memory number that no filled store contains

Budgets = list[tuple[str, str, str, str]]


class Growth(NamedTuple):
    """One size: p50 in ms of Quipu and of the naive form, their ratio, recall@10, MB, and ms to the first answers."""

    size: int
    quipu_ms: float
    naive_ms: float
    speedup: float
    recall: float
    anonymous_mb: float
    first_ms: float
    first_semantic_ms: float


class WriteCost(NamedTuple):
    """One round of writes: microseconds of processor time per write, and p50 in milliseconds."""

    cpu: float
    p50: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=3,
        sizes={"type": int, "nargs": "+", "default": _SIZES, "help": "memories in the store"},
        only={"nargs": "+", "choices": _PARTS, "default": _PARTS, "help": "parts to run"},
        keep={"type": Path, "help": "folder for the filled stores"},
        chart={"type": Path, "help": "SVG file to draw"},
    )
    machine()
    sizes = (500, 1000) if chosen.quick else sorted(chosen.sizes)
    complaints: list[str] = []
    promised: Budgets = []
    with tempfile.TemporaryDirectory(dir=chosen.keep) as temporary:
        folder, work = chosen.keep or Path(temporary), Path(temporary) / "work"
        if "recall" in chosen.only:
            promised += _growth(folder, sizes, chosen.rounds, complaints, chosen.chart)
        if "writes" in chosen.only:
            promised += _writes(folder, work, sizes, chosen.rounds)
        if "deletes" in chosen.only:
            promised += _deletes(folder, work, sizes, chosen.rounds, complaints)
        if "lonely" in chosen.only:
            promised += _small_scope(folder, work, sizes[-1], chosen.rounds, complaints)
        if "scopes" in chosen.only:
            promised += _many_scopes(folder, sizes[-1], complaints)
    budgets(promised)
    return finish(complaints)


def _growth(folder: Path, sizes: Sequence[int], count: int, complaints: list[str], chart: Path | None) -> Budgets:
    grown = [_measured(store_fixtures.filled(folder, size), size, count, complaints) for size in sizes]
    titles = "memories", "p50 ms", "naive p50 ms", "speedup", "recall@10", "anonymous MB", "first ms", "semantic ms"
    table(f"recall over MCP, one caller, {count} rounds (medians)", titles, grown)
    if chart:
        lines = {
            "Quipu": [(one.size, one.quipu_ms) for one in grown],
            "naive": [(one.size, one.naive_ms) for one in grown],
        }
        axes = charts.Axis("memories"), charts.Axis("milliseconds")
        chart.write_text(charts.chart("p50 of recall by size", *axes, lines), encoding="utf-8")
    promised: Budgets = []
    for one in grown:
        promised.append(budget(f"recall@10 of the vector stage at {one.size:,}", one.recall, 0.98, least=True))
        if one.size in _MIN_SPEEDUP:
            ratio = f"p50 of naive over recall at {one.size:,}"
            promised.append(budget(ratio, one.speedup, _MIN_SPEEDUP[one.size], least=True))
    return [*promised, budget(f"anonymous memory at {sizes[-1]:,}, MB", grown[-1].anonymous_mb, _MAX_ANONYMOUS_MB)]


def _measured(data: Path, size: int, count: int, complaints: list[str]) -> Growth:
    texts = [question.text for question in corpus.questions(min(_QUESTIONS, size), size)]
    with RecallProfile(data) as kernel:
        recall = kernel.recall_at_10(texts)
    first, first_semantic = _cold(data, texts)
    with ExitStack() as stack:
        ours = stack.enter_context(quipu(data))
        naive = stack.enter_context(served("loadtests.baselines.naive_server", "--data", str(data)))
        naive.wait()
        sent = [_recall_request({"query": text}) for text in texts]
        plain = [msgspec.json.encode({"query": text}) for text in texts]
        asked = [Request(http_requests.post("/search", body), (b'"memories":[{"id":',)) for body in plain]
        drive(ours.port, sent, callers=1)
        drive(naive.port, islice(asked, 3), callers=1)
        requests = {"ours": (ours, sent), "naive": (naive, asked)}
        sides = {name: partial(_p50, *side, complaints, _RECALL_SECONDS) for name, side in requests.items()}
        seen = rounds(count, sides)
        anonymous = ours.anonymous()
    speedup = paired(seen["naive"], seen["ours"])
    return Growth(size, median(seen["ours"]), median(seen["naive"]), speedup, recall, anonymous, first, first_semantic)


def _p50(server: Server, requests: Sequence[Request], complaints: list[str], seconds: float) -> float:
    """Milliseconds, for one caller."""
    seen = drive(server.port, cycle(requests), callers=1, seconds=seconds)
    if seen.errors:
        complaints.append(seen.complaint)
    return seen.percentile(0.5)


def _cold(data: Path, texts: Sequence[str]) -> tuple[float, float]:
    """Milliseconds from a listening server to its first answer, and to the first one with semantic search."""
    with served("kernel", "serve", "--data", str(data)) as server:
        server.wait("/readyz", status=0)
        started = time.perf_counter()
        answered = 0.0
        for text in cycle(texts):
            signals = _signals(server.port, text)
            answered = answered or time.perf_counter() - started
            if "meaning" in signals:
                break
        return answered * 1e3, (time.perf_counter() - started) * 1e3


def _signals(port: int, text: str) -> list[str]:
    body = json.dumps({"query": text}).encode()
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/tools/recall", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked) as reply:
        return json.load(reply)["signals"]


def _writes(folder: Path, work: Path, sizes: Sequence[int], count: int) -> Budgets:
    """Cost of a durable write in the largest store over one of ten thousand."""
    small = min(sizes[:-1], key=lambda size: abs(size - 10_000))
    with ExitStack() as stack:
        sides = {
            size: stack.enter_context(
                quipu(store_fixtures.copied(store_fixtures.filled(folder, size), work / f"writes-{size}"))
            )
            for size in {small, sizes[-1]}
        }
        numbers = counted(_UNUSED_NUMBER)
        for server in sides.values():
            _write(server, numbers)
        seen = rounds(count, {str(size): partial(_write, server, numbers) for size, server in sides.items()})
    shutil.rmtree(work)
    rows = [
        (f"{int(size):,}", median(run.cpu for run in runs), median(run.p50 for run in runs))
        for size, runs in seen.items()
    ]
    table(f"add_memory over MCP, {_CALLERS} callers, {count} rounds (medians)", ("memories", "cpu us", "p50 ms"), rows)
    base, large = seen[str(small)], seen[str(sizes[-1])]
    return [
        budget(
            f"{name} of a write at {sizes[-1]:,} over {small:,}",
            paired([getattr(run, field) for run in large], [getattr(run, field) for run in base]),
            1.5,
        )
        for name, field in (("processor time", "cpu"), ("p50", "p50"))
    ]


def _write(server: Server, numbers: Iterable[int]) -> WriteCost:
    made = [corpus.memory(number) for _, number in zip(range(8000), numbers, strict=False)]
    sent = [
        http_requests.mcp("modern", "add_memory", {"path": memory.path, "content": memory.text}, memory.path.encode())
        for memory in made
    ]
    before = server.cpu()
    seen = drive(server.port, sent, callers=_CALLERS, seconds=_SECONDS)
    return WriteCost((server.cpu() - before) / max(1, seen.replies) * 1e6, seen.percentile(0.5))


def _deletes(folder: Path, work: Path, sizes: Sequence[int], count: int, complaints: list[str]) -> Budgets:
    """A store with half of its memories deleted and compacted, against a fresh store of the same size."""
    size = sizes[-1]
    data = store_fixtures.copied(store_fixtures.filled(folder, size), work / "deleted")
    context, db = store_fixtures.opened(data)
    store_fixtures.dropped(db, [memory.path for number, memory in enumerate(corpus.memories(size)) if number % 2])
    db.close()
    freed = compact(Config(data).file, context, lambda part: print(f"  {part}"), Choice(forget=utc_now()))
    fresh = store_fixtures.filled(folder, size // 2)
    kept = range(0, size, max(2, size // _QUESTIONS // 2 * 2))
    # Questions about memories that exist in both stores.
    asked = {"half deleted": kept, "fresh": [number // 2 for number in kept]}
    with ExitStack() as stack:
        servers = {"half deleted": stack.enter_context(quipu(data)), "fresh": stack.enter_context(quipu(fresh))}
        seen = _latencies(
            servers,
            {
                name: [_recall_request({"query": corpus.question(number).text}) for number in numbers]
                for name, numbers in asked.items()
            },
            count,
            complaints,
        )
    files = {"half deleted": freed.after, "fresh": Config(fresh).file.stat().st_size}
    rows = [(name, files[name] / 1e6, median(seen[name])) for name in seen]
    table(
        f"half of {size:,} deleted and compacted ({freed.before / 1e6:,.0f} MB before)", ("store", "MB", "p50 ms"), rows
    )
    shutil.rmtree(work)
    return [
        budget("file of a compacted store over a fresh one", files["half deleted"] / files["fresh"], 1.15),
        budget("p50 of a compacted store over a fresh one", paired(seen["half deleted"], seen["fresh"]), 1.15),
    ]


def _small_scope(folder: Path, work: Path, size: int, count: int, complaints: list[str]) -> Budgets:
    """A scope of ten memories in a large store, against a store of these ten."""
    ten = [(_SMALL_SCOPE, memory.text) for memory in corpus.memories(_SMALL_SCOPE_SIZE, _UNUSED_NUMBER)]
    alone, among = work / "alone", store_fixtures.copied(store_fixtures.filled(folder, size), work / "among")
    for data in (alone, among):
        context, db = store_fixtures.opened(data)
        store_fixtures.remember(db, context, ten)
        db.close()
    sent = [_recall_request({"query": text, "scope": _SMALL_SCOPE, "max_tokens": 9000}, whole=True) for _, text in ten]
    with ExitStack() as stack:
        servers = {name: stack.enter_context(quipu(data)) for name, data in (("alone", alone), ("among", among))}
        seen = _latencies(servers, dict.fromkeys(servers, sent), count, complaints)
    table(
        "recall over MCP, one caller", ("ten memories", "p50 ms"), [(name, median(p50)) for name, p50 in seen.items()]
    )
    shutil.rmtree(work)
    return [budget(f"ten memories among {size:,} over the same alone", paired(seen["among"], seen["alone"]), 2)]


def _many_scopes(folder: Path, size: int, complaints: list[str]) -> Budgets:
    """p50 of queries over many scopes, one scope and one dialect."""
    many = min(_SCOPES, size // _SMALL_SCOPE_SIZE)
    with quipu(store_fixtures.scoped(folder, size, many)) as server:
        rows = [
            (name, _latencies({name: server}, {name: sent}, 1, complaints)[name][0])
            for name, sent in _scope_queries(size).items()
        ]
    table(f"{size:,} memories in {many:,} scopes, one caller", ("what", "p50 ms"), rows)
    return []


def _scope_queries(size: int) -> dict[str, list[Request]]:
    """Requests by kind of query."""
    scopes = min(_SCOPES, size // _SMALL_SCOPE_SIZE)
    asked = [(corpus.question(number).text, number % scopes) for number in range(0, size, max(1, size // _QUESTIONS))]
    return {
        "all": [_recall_request({"query": text}) for text, _ in asked],
        "one scope": [_recall_request({"query": text, "scope": f"session {scope}"}) for text, scope in asked],
        "one dialect": [_recall_request({"query": text, "dialects": ["sessions"]}) for text, _ in asked],
        "search_memory, one scope": [
            http_requests.mcp(
                "modern", "search_memory", {"query": text, "session_id": f"session {scope}"}, b'"result":[{'
            )
            for text, scope in asked
        ],
    }


def _recall_request(arguments: dict[str, object], *, whole: bool = False) -> Request:
    """A recall that must find something, with `whole` all matches; without a floor, as the naive form has none."""
    request = http_requests.mcp("modern", "recall", {**arguments, "floor": "none"}, b'"memories":[{"id":')
    return request._replace(expect=(*request.expect, b'"omitted":0')) if whole else request


def _latencies(
    servers: dict[str, Server], sent: dict[str, list[Request]], count: int, complaints: list[str]
) -> dict[str, list[float]]:
    """p50 in milliseconds by server and round, one caller, after a warm-up."""

    for name, server in servers.items():
        drive(server.port, sent[name], callers=1)
    sides = {name: partial(_p50, server, sent[name], complaints, _SECONDS) for name, server in servers.items()}
    return rounds(count, sides)


if __name__ == "__main__":
    raise SystemExit(main())

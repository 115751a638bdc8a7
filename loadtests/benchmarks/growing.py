"""Parts of the bench of scale: what writes cost, what deletes give back, and what small scopes and many scopes cost."""

import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count as counted
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

from kernel.config import Config
from kernel.ids import utc_now
from kernel.maintenance.compact import compact
from loadtests.lib import corpus, http_requests, store_fixtures
from loadtests.lib.http_load import Request, drive
from loadtests.lib.servers import Server, budget, paired, quipu, rounds, table

_CALLERS = 64
_SECONDS = 2.0
_LONELY = "the session of ten"
_TEN = 10
_SCOPES = 10_000
_QUESTIONS = 100
_FRESH = 5_000_000  # numbers of memories that no store is filled with

Budgets = list[tuple[str, str, str, str]]


class Written(NamedTuple):
    """One round of writes: microseconds of processor time for each, and p50 in milliseconds."""

    cpu: float
    p50: float


def writes(folder: Path, work: Path, sizes: Sequence[int], count: int) -> Budgets:
    """What a durable write costs in the largest store and in one of ten thousand."""
    some = min(sizes[:-1], key=lambda size: abs(size - 10_000))
    with ExitStack() as stack:
        sides = {
            size: stack.enter_context(
                quipu(store_fixtures.copied(store_fixtures.filled(folder, size), work / f"writes-{size}"))
            )
            for size in {some, sizes[-1]}
        }
        numbers = counted(_FRESH)
        for server in sides.values():
            _write(server, numbers)
        seen = rounds(count, {str(size): partial(_write, server, numbers) for size, server in sides.items()})
    shutil.rmtree(work)
    rows = [
        (f"{int(size):,}", median(run.cpu for run in runs), median(run.p50 for run in runs))
        for size, runs in seen.items()
    ]
    table(f"add_memory over MCP, {_CALLERS} callers, {count} rounds (medians)", ("memories", "cpu us", "p50 ms"), rows)
    small, large = seen[str(some)], seen[str(sizes[-1])]
    return [
        budget(
            f"{name} of a write at {sizes[-1]:,} over {some:,}",
            paired([getattr(run, field) for run in large], [getattr(run, field) for run in small]),
            1.5,
        )
        for name, field in (("processor time", "cpu"), ("p50", "p50"))
    ]


def _write(server: Server, numbers: Iterable[int]) -> Written:
    made = [corpus.memory(number) for _, number in zip(range(8000), numbers, strict=False)]
    sent = [
        http_requests.mcp("modern", "add_memory", {"path": memory.path, "content": memory.text}, memory.path.encode())
        for memory in made
    ]
    before = server.cpu()
    seen = drive(server.port, sent, callers=_CALLERS, seconds=_SECONDS)
    return Written((server.cpu() - before) / max(1, seen.replies) * 1e6, seen.percentile(0.5))


def deletes(folder: Path, work: Path, sizes: Sequence[int], count: int, complaints: list[str]) -> Budgets:
    """A store of which half was deleted, made compact, against one that was filled with as many memories."""
    size = sizes[-1]
    data = store_fixtures.copied(store_fixtures.filled(folder, size), work / "deleted")
    world, db = store_fixtures.opened(data)
    store_fixtures.dropped(db, [memory.path for number, memory in enumerate(corpus.memories(size)) if number % 2])
    db.close()
    freed = compact(Config(data).file, world, lambda part: print(f"  {part}"), forget=utc_now())
    fresh = store_fixtures.filled(folder, size // 2)
    kept = range(0, size, max(2, size // _QUESTIONS // 2 * 2))
    asked = {"half deleted": kept, "fresh": [number // 2 for number in kept]}  # each about memories that are there
    with ExitStack() as stack:
        servers = {"half deleted": stack.enter_context(quipu(data)), "fresh": stack.enter_context(quipu(fresh))}
        seen = _asked(
            servers,
            {
                name: [_recall({"query": corpus.question(number).text}) for number in numbers]
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


def lonely(folder: Path, work: Path, size: int, count: int, complaints: list[str]) -> Budgets:
    """A scope of ten memories among many against the same alone."""
    ten = [(_LONELY, memory.text) for memory in corpus.memories(_TEN, _FRESH)]
    alone, among = work / "alone", store_fixtures.copied(store_fixtures.filled(folder, size), work / "among")
    for data in (alone, among):
        world, db = store_fixtures.opened(data)
        store_fixtures.remember(db, world, ten)
        db.close()
    sent = [_recall({"query": text, "scope": _LONELY, "max_tokens": 9000}, whole=True) for _, text in ten]
    with ExitStack() as stack:
        servers = {name: stack.enter_context(quipu(data)) for name, data in (("alone", alone), ("among", among))}
        seen = _asked(servers, dict.fromkeys(servers, sent), count, complaints)
    table(
        "recall over MCP, one caller", ("ten memories", "p50 ms"), [(name, median(p50)) for name, p50 in seen.items()]
    )
    shutil.rmtree(work)
    return [budget(f"ten memories among {size:,} over the same alone", paired(seen["among"], seen["alone"]), 2)]


def scopes(folder: Path, size: int, complaints: list[str]) -> Budgets:
    """Many memories in many scopes, asked in several ways."""
    many = min(_SCOPES, size // _TEN)
    with quipu(store_fixtures.scoped(folder, size, many)) as server:
        rows = [
            (name, _asked({name: server}, {name: sent}, 1, complaints)[name][0]) for name, sent in _many(size).items()
        ]
    table(f"{size:,} memories in {many:,} scopes, one caller", ("what", "p50 ms"), rows)
    return []


def _many(size: int) -> dict[str, list[Request]]:
    """Questions to a store of many scopes: to all of them, to one, and to those of one dialect."""
    scopes = min(_SCOPES, size // _TEN)
    asked = [(corpus.question(number).text, number % scopes) for number in range(0, size, max(1, size // _QUESTIONS))]
    return {
        "all": [_recall({"query": text}) for text, _ in asked],
        "one scope": [_recall({"query": text, "scope": f"session {scope}"}) for text, scope in asked],
        "one dialect": [_recall({"query": text, "dialects": ["sessions"]}) for text, _ in asked],
        "search_memory, one scope": [
            http_requests.mcp(
                "modern", "search_memory", {"query": text, "session_id": f"session {scope}"}, b'"result":[{'
            )
            for text, scope in asked
        ],
    }


def _recall(arguments: dict[str, object], *, whole: bool = False) -> Request:
    """Must find something; where it must find all ten, ten ids are in the answer."""
    request = http_requests.mcp("modern", "recall", arguments, b'"memories":[{"id":')
    return request._replace(expect=(*request.expect, b'"omitted":0')) if whole else request


def _asked(
    servers: dict[str, Server], sent: dict[str, list[Request]], count: int, complaints: list[str]
) -> dict[str, list[float]]:
    """p50 of each server in turn, in milliseconds."""

    def p50(name: str) -> float:
        seen = drive(servers[name].port, cycle(sent[name]), callers=1, seconds=_SECONDS)
        if seen.errors:
            complaints.append(seen.complaint)
        return seen.percentile(0.5)

    for name, server in servers.items():
        drive(server.port, sent[name], callers=1)
    return rounds(count, {name: partial(p50, name) for name in servers})

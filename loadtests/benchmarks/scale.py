"""The store from a thousand memories to a million: recall against the naive form, recall@10, memory, the first answer,
writes, deletes, small scopes beside huge ones and many scopes; and a chart of how the time grows.

`--keep FOLDER` keeps the filled files for the next run (three gigabytes for a million memories, once); `--only` names
parts; `--chart FILE` draws.
"""

import json
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from loadtests.benchmarks import growing
from loadtests.lib import charts, corpus, http_requests, store_fixtures
from loadtests.lib.http_load import Request, drive
from loadtests.lib.recall_profile import Inside
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
_FASTER = {100_000: 10.0, 1_000_000: 40.0}
_ANONYMOUS_MB = 150.0
_SECONDS = 3.0

Budgets = list[tuple[str, str, str, str]]


class Grown(NamedTuple):
    """What was seen of one size: p50 in milliseconds of ours and the naive one, their ratio, and the rest."""

    size: int
    ours: float
    naive: float
    faster: float
    recall: float
    anonymous: float
    first: float
    second: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        sizes={"type": int, "nargs": "+", "default": _SIZES, "help": "memories in the store"},
        only={"nargs": "+", "choices": _PARTS, "default": _PARTS, "help": "parts of the bench"},
        keep={"type": Path, "help": "a folder for the filled files"},
        chart={"type": Path, "help": "an SVG file to draw the growth into"},
    )
    machine()
    sizes = (500, 1000) if chosen.quick else sorted(chosen.sizes)
    count = chosen.rounds or (1 if chosen.quick else 3)
    complaints: list[str] = []
    promised: Budgets = []
    with tempfile.TemporaryDirectory(dir=chosen.keep) as temporary:
        folder, work = chosen.keep or Path(temporary), Path(temporary) / "work"
        if "recall" in chosen.only:
            promised += _recall(folder, sizes, count, complaints, chosen.chart)
        if "writes" in chosen.only:
            promised += growing.writes(folder, work, sizes, count)
        if "deletes" in chosen.only:
            promised += growing.deletes(folder, work, sizes, count, complaints)
        if "lonely" in chosen.only:
            promised += growing.lonely(folder, work, sizes[-1], count, complaints)
        if "scopes" in chosen.only:
            promised += growing.scopes(folder, sizes[-1], complaints)
    budgets(promised)
    return finish(complaints)


def _recall(folder: Path, sizes: Sequence[int], count: int, complaints: list[str], drawn: Path | None) -> Budgets:
    grown = [_one(store_fixtures.filled(folder, size), size, count, complaints) for size in sizes]
    header = (
        "memories",
        "p50 ms",
        "naive p50 ms",
        "faster x",
        "recall@10",
        "anonymous MB",
        "first answer",
        "by meaning, ms",
    )
    table(f"recall over MCP, one caller, {count} rounds (medians)", header, grown)
    if drawn:
        drawn.write_text(charts.drawn([(one.size, one.ours, one.naive) for one in grown]), encoding="utf-8")
    promised: Budgets = []
    for one in grown:
        promised.append(budget(f"recall@10 of the vector stage at {one.size:,}", one.recall, 0.98, least=True))
        if one.size in _FASTER:
            what = f"p50 of recall over naive at {one.size:,}"
            promised.append(budget(what, one.faster, _FASTER[one.size], least=True))
    return [*promised, budget(f"anonymous memory at {sizes[-1]:,}, MB", grown[-1].anonymous, _ANONYMOUS_MB)]


def _one(data: Path, size: int, count: int, complaints: list[str]) -> Grown:
    texts = [question.text for question in corpus.questions(min(_QUESTIONS, size), size)]
    with Inside(data) as kernel:
        recall = kernel.recall_at_10(texts)
    first, second = _cold(data, texts)
    with ExitStack() as stack:
        ours = stack.enter_context(quipu(data))
        naive = stack.enter_context(served("loadtests.baselines.naive_server", "--data", str(data)))
        naive.wait()
        sent = [http_requests.mcp("modern", "recall", {"query": text}, b'"memories":[{"id":') for text in texts]
        plain = [msgspec.json.encode({"query": text}) for text in texts]
        asked = [Request(http_requests.post("/search", body), (b'"memories":[{"id":',)) for body in plain]
        drive(ours.port, sent, callers=1)
        drive(naive.port, islice(asked, 3), callers=1)
        sides = {"ours": partial(_p50, ours, sent, complaints), "naive": partial(_p50, naive, asked, complaints)}
        seen = rounds(count, sides)
        anonymous = ours.anonymous()
    faster = paired(seen["naive"], seen["ours"])
    return Grown(size, median(seen["ours"]), median(seen["naive"]), faster, recall, anonymous, first, second)


def _p50(server: Server, requests: Sequence[Request], complaints: list[str]) -> float:
    seen = drive(server.port, cycle(requests), callers=1, seconds=_SECONDS)
    if seen.errors:
        complaints.append(seen.complaint)
    return seen.percentile(0.5)


def _cold(data: Path, texts: Sequence[str]) -> tuple[float, float]:
    """Milliseconds from a server that listens to its first answer, and to the first one by meaning too."""
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


if __name__ == "__main__":
    raise SystemExit(main())

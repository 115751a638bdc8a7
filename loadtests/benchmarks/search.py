"""Hybrid search over HTTP against the naive form, at two sizes; recall of the vector stage against exact cosine.

`--keep FOLDER` keeps the filled stores for the next run.
"""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from kernel.core.config import MODEL
from kernel.embed.model import Embedder
from loadtests.baselines.naive_server import Naive
from loadtests.lib import corpus, http_requests, recall_profile, store_fixtures
from loadtests.lib.http_load import Request, Result, drive
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

_SIZES = (10_000, 100_000)
_QUESTIONS = 200
_JUDGED = 40
_LARGE = 100_000
_CALLERS = (1, 8)
_QUIPU, _NAIVE, _KIND = "quipu", "naive", "naive, no stop words"


class Run(NamedTuple):
    """One round of one side: the latencies, and the server's processor time per search."""

    seen: Result
    cpu: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=3,
        sizes={"type": int, "nargs": "+", "default": _SIZES, "help": "memories in the store"},
        seconds={"type": float, "default": 1.5, "help": "length of one run"},
        keep={"type": Path, "help": "folder for the filled stores"},
    )
    machine()
    complaints: list[str] = []
    sizes = (500,) if chosen.quick else chosen.sizes
    with tempfile.TemporaryDirectory() as temporary:
        for size in sizes:
            data = store_fixtures.filled(chosen.keep or Path(temporary), size)
            complaints += _one(data, size, chosen.rounds, 0.3 if chosen.quick else chosen.seconds)
    return finish(complaints)


def _one(data: Path, size: int, count: int, seconds: float) -> list[str]:
    asked = corpus.questions(min(_QUESTIONS, size), size)
    texts = [question.text for question in asked]
    with recall_profile.RecallProfile(data) as kernel:
        answers = {text: kernel.answer(text) for text in texts}
        quality = kernel.recall_at_10(texts)
        signals, steps = kernel.signals(texts), kernel.steps(texts)
    runs = _measure(data, _requests({text: ids[0] for text, ids in answers.items() if ids}), count, seconds)
    for callers, sides in runs.items():
        _show(f"{size:,} memories, {callers} caller(s), {count} rounds (medians; cpu is the least)", sides)
    table(f"in process at {size:,}, microseconds", ("query", "median", "p90"), signals)
    table(f"inside one recall at {size:,}, microseconds, self time", ("step", "mean", "p90"), steps)
    _judge(data, asked, answers)
    promised = [budget("vector stage recall@10 against exact cosine", quality, 0.98, least=True)]
    for callers, sides in runs.items() if size >= _LARGE else ():
        promised.append(budget(f"searches/s over naive, {callers} caller(s)", _ratio(sides), 8, least=True))
    budgets(promised)
    complaints = [f"nothing was found for {text!r}" for text, ids in answers.items() if not ids]
    seen = [run.seen for sides in runs.values() for side in sides.values() for run in side]
    return complaints + [result.complaint for result in seen if result.errors]


def _judge(data: Path, asked: Sequence[corpus.Question], answers: dict[str, list[str]]) -> None:
    """Print how often each side finds the target memory; the naive form is too slow for all questions."""
    judged = asked[:: max(1, len(asked) // _JUDGED)]
    naive = _naive_answers(data, judged)
    hits = [
        ("quipu, all questions", len(asked), _found(asked, answers)),
        ("quipu, the questions of the naive form", len(judged), _found(judged, answers)),
        ("naive", len(judged), _found(judged, naive)),
    ]
    table("target memory among the ten found", ("side", "questions", "share"), hits)


def _naive_answers(data: Path, asked: Sequence[corpus.Question]) -> dict[str, list[str]]:
    naive = Naive(data / "naive.db", Embedder(MODEL))
    found = {question.text: [f"paths/{note['path']}" for note in naive.search(question.text)] for question in asked}
    naive.db.close()
    return found


def _found(asked: Sequence[corpus.Question], answers: dict[str, list[str]]) -> float:
    return sum(f"paths/{question.path}" in answers[question.text] for question in asked) / len(asked)


def _requests(firsts: dict[str, str]) -> dict[str, list[Request]]:
    """Quipu must rank first what it ranks first in this process; the naive form must find something."""
    ours = [
        http_requests.mcp("modern", "recall", {"query": text}, b'"memories":[{"id":"%b"' % first.encode())
        for text, first in firsts.items()
    ]
    naive: dict[bool, list[Request]] = {}
    for stop_words in (True, False):
        bodies = [msgspec.json.encode({"query": text, "stop_words": stop_words}) for text in firsts]
        naive[stop_words] = [Request(http_requests.post("/search", body), (b'"memories":[{"id":',)) for body in bodies]
    return {_QUIPU: ours, _NAIVE: naive[True], _KIND: naive[False]}


def _measure(data: Path, sent: dict[str, list[Request]], count: int, seconds: float) -> dict[int, dict[str, list[Run]]]:
    with ExitStack() as stack:
        ours = stack.enter_context(quipu(data))
        naive = stack.enter_context(served("loadtests.baselines.naive_server", "--data", str(data)))
        naive.wait()
        servers = {_QUIPU: ours, _NAIVE: naive, _KIND: naive}
        for name, server in servers.items():
            drive(server.port, islice(sent[name], 20), callers=2)

        def runs(callers: int) -> dict[str, list[Run]]:
            sides = {
                name: lambda server=server, name=name: _run(server, sent[name], callers, seconds)
                for name, server in servers.items()
            }
            return rounds(count, sides)

        return {callers: runs(callers) for callers in _CALLERS}


def _run(server: Server, requests: Sequence[Request], callers: int, seconds: float) -> Run:
    before = server.cpu()
    seen = drive(server.port, cycle(requests), callers=callers, seconds=seconds)
    return Run(seen, (server.cpu() - before) / max(1, seen.replies))


def _show(title: str, runs: dict[str, list[Run]]) -> None:
    rows = [
        (
            name,
            median(run.seen.rate for run in side),
            median(run.seen.percentile(0.5) for run in side),
            median(run.seen.percentile(0.99) for run in side),
            min(run.cpu for run in side) * 1e3,
            paired(_rates(runs[_QUIPU]), _rates(side)),
            median(run.cpu for run in side) / median(run.cpu for run in runs[_QUIPU]),
        )
        for name, side in runs.items()
    ]
    table(title, ("server", "searches/s", "p50 ms", "p99 ms", "cpu ms", "quipu speedup", "cpu over quipu"), rows)


def _rates(side: Sequence[Run]) -> list[float]:
    return [run.seen.rate for run in side]


def _ratio(runs: dict[str, list[Run]]) -> float:
    return paired(_rates(runs[_QUIPU]), _rates(runs[_NAIVE]))


if __name__ == "__main__":
    raise SystemExit(main())

"""Writes and recalls on PostgreSQL beside those on SQLite, in turns: `make bench-postgres` (ARGS="--rows 10000")."""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kernel import app
from kernel.config import Config
from kernel.security.permissions import ANONYMOUS_CALLER
from kernel.tools import Reply
from tests.postgres import stores

_ROOT = Path(__file__).resolve().parents[2]
_CALLERS = 64
_WORDS = 30  # of a text
_QUESTIONS = 100
_ALONE = 50  # writes of one caller


class Measured(NamedTuple):
    """One store: writes in a second by 64 callers, ms of a write alone and of a recall, and the answers."""

    writes: float
    alone: float
    recall: float
    answers: list[Any]


def measure(config: Config, texts: list[str], questions: list[str]) -> Measured:
    """Fills a new store and asks it."""
    kernel = app.open_kernel(config)

    async def call(tool: str, **arguments: Any) -> Reply:
        entry = kernel.dispatch.tools[tool]
        answer = await kernel.dispatch.call(entry, msgspec.json.encode(arguments), ANONYMOUS_CALLER)
        assert isinstance(answer, Reply)
        assert answer.fault is None, answer.body
        return answer

    async def write(numbers: Any) -> None:
        for number in numbers:
            await call("add_memory", path=f"bench/{number}", content=texts[number])

    async def run() -> Measured:
        began = time.perf_counter()
        shared = iter(range(len(texts)))
        await asyncio.gather(*(write(shared) for _ in range(_CALLERS)))
        writes = len(texts) / (time.perf_counter() - began)
        began = time.perf_counter()
        for number in range(_ALONE):
            await call("add_memory", path=f"alone/{number}", content=texts[number])
        alone = (time.perf_counter() - began) / _ALONE * 1000
        for question in questions[:10]:
            await call("recall", query=question)
        times: list[float] = []
        answers: list[Any] = []
        for question in questions:
            began = time.perf_counter()
            answer = await call("recall", query=question)
            times.append((time.perf_counter() - began) * 1000)
            answers.append(msgspec.json.decode(answer.body)["memories"])  # a cursor is sealed by its store
        return Measured(writes, alone, statistics.median(times), answers)

    try:
        return asyncio.run(run())
    finally:
        kernel.store.close()


def main() -> None:
    """Prints both, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    rows = parser.parse_args().rows
    pages = [file.read_text(encoding="utf-8") for file in sorted((_ROOT / "docs").glob("*.md"))]
    words = [word for word in " ".join(pages).split() if word.isalpha()]
    chance = random.Random(1)
    texts = [" ".join(chance.choices(words, k=_WORDS)) for _ in range(rows)]
    questions = [" ".join(chance.choices(words, k=4)) for _ in range(_QUESTIONS)]
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER", _ROOT)) as folder:
        file = measure(Config(data=Path(folder) / "sqlite"), texts, questions)
        database = stores.new_database("bench")
        shared = measure(Config(data=Path(folder) / "postgres", store=database), texts, questions)
    for name, one in (("SQLite", file), ("PostgreSQL", shared)):
        print(f"{name:10} {one.writes:7.0f} writes/s  {one.alone:6.1f} ms alone  {one.recall:6.1f} ms a recall")
    same = sum(one == other for one, other in zip(file.answers, shared.answers, strict=True))
    print(
        f"{'ratio':10} {shared.writes / file.writes:7.2f}           {shared.alone / file.alone:6.2f}"
        f"           {shared.recall / file.recall:6.2f}             {same} of {len(questions)} answers are equal"
    )


if __name__ == "__main__":
    main()

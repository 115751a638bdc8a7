"""`search_memory` in a session against bare `index.search`, and a session of one memory among many others.

`--keep FOLDER` keeps the filled store for the next run.
"""

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.search import index
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx
from loadtests.lib import corpus
from loadtests.lib.servers import budget, budgets, finish, machine, options, paired, rounds, table
from loadtests.lib.store_fixtures import named

_SIZE = 100_000
_GROUP = 5000
_QUESTIONS = 150
_SESSIONS = 100
_SPACE, _LONELY = "sessions", "lonely"
_NOTE = "The garage on Harbour Street opens at nine, ask for Illa"
_ASKED = ("garage", "when can I bring the car", "Harbour Street", "", '"opens": at-nine?', _NOTE, "green tea")
_CALL_CONTEXT = CallContext("sessions", "search_memory", "bench")
_OVERSAMPLED = 48


class Session(NamedTuple):
    """One session to search: its id, and its approximate number of memories."""

    id: str
    size: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if the small session's memory was not found, or another was."""
    chosen = options(
        __doc__,
        arguments,
        size={"type": int, "default": _SIZE, "help": "memories of other sessions"},
        keep={"type": Path, "help": "folder for the filled store"},
    )
    machine()
    size = 2000 if chosen.quick else chosen.size
    with tempfile.TemporaryDirectory() as temporary:
        config = Config(filled(chosen.keep or Path(temporary), size))
        context = app.context_of(config)
        reader = Connection(config.file, context, readonly=True)
        reader.load_vectors()
        complaints = _isolated(reader)
        found = _compare(reader, size, chosen.rounds or (2 if chosen.quick else 7))
        reader.close()
    budgets([budget(f"search_memory over index.search, p50, {name}", ratio, 2.0) for name, ratio in found.items()])
    return finish(complaints)


def filled(folder: Path, size: int) -> Path:
    """A data directory with `size` memories in a hundred sessions, and one in a session of its own."""
    data = folder / f"sessions-{size}"
    done = data / "complete"
    if not done.exists():
        config = Config(data)
        context = app.context_of(config)
        app.prepare_data(config, context)
        _fill(config, context, size)
        done.touch()
    return data


def _fill(config: Config, context: StoreContext, size: int) -> None:
    db = Connection(config.file, context, readonly=False, durable=False)
    db.load_vectors()
    _, tool = named("remember")
    started = time.perf_counter()
    for group in _groups(size):
        with db.writing(CallContext("sessions", "remember", "bench")) as tx:
            for number, memory in group:
                tool.handler(tx, tool.request(content=memory.text, session_id=f"s{number % _SESSIONS}"))
    with db.writing() as tx:
        tool.handler(tx, tool.request(content=_NOTE, session_id=_LONELY))
    table("filling", ("step", "seconds"), [(f"{size:,} memories", time.perf_counter() - started)])
    db.checkpoint(truncate=True)
    db.close()


def _groups(size: int) -> Iterator[list[tuple[int, corpus.Memory]]]:
    numbers = enumerate(corpus.memories(size))
    while group := list(islice(numbers, _GROUP)):
        yield group


def _isolated(reader: Connection) -> list[str]:
    """Errors in the answers for the session of one memory."""
    _, tool = named("search_memory")
    wrong: list[str] = []
    for query in _ASKED:
        request = tool.request(query=query, session_id=_LONELY)
        found = reader.read(_CALL_CONTEXT, lambda tx, request=request: tool.handler(tx, request)).result
        if [(memory.content, memory.session_id) for memory in found] != [(_NOTE, _LONELY)]:
            wrong.append(f"{query!r} in a session of one memory found {len(found)} others")
    table("a session of one memory", ("questions", "found"), [(len(_ASKED), len(_ASKED) - len(wrong))])
    return wrong


def _compare(reader: Connection, size: int, count: int) -> dict[str, float]:
    dialect, tool = named("search_memory")
    asked = [question.text for question in corpus.questions(min(_QUESTIONS, size), size)]
    ratios: dict[str, float] = {}
    rows: list[tuple[Any, ...]] = []
    for session in (Session("s7", size // _SESSIONS), Session(_LONELY, 1)):

        def ours(tx: Tx, text: str, session: str = session.id) -> Any:
            return dialect.reply(tool, tool.handler(tx, tool.request(query=text, session_id=session)))

        def bare(tx: Tx, text: str, session: str = session.id) -> Any:
            return index.search(tx, text, within=[(_SPACE, session)], limit=_OVERSAMPLED)

        sides = {name: _timing(reader, work, asked) for name, work in (("search_memory", ours), ("index.search", bare))}
        for side in sides.values():
            side()
        seen = rounds(count, sides)
        name = f"session of {session.size:,}"
        ratios[name] = paired(seen["search_memory"], seen["index.search"])
        rows += [(f"{side}, {name}", median(times) * 1e6) for side, times in seen.items()]
    table(f"{len(asked)} questions among {size:,} memories, {count} rounds", ("query", "p50 us"), rows)
    return ratios


def _timing(reader: Connection, work: Callable[[Tx, str], Any], asked: Sequence[str]) -> Callable[[], float]:
    """The median over the questions, in seconds."""

    def measure() -> float:
        gc.collect()
        taken: list[float] = []
        for text in asked:
            started = time.perf_counter()
            reader.read(_CALL_CONTEXT, lambda tx, text=text: work(tx, text))
            taken.append(time.perf_counter() - started)
        return median(taken)

    return measure


if __name__ == "__main__":
    raise SystemExit(main())

"""The tools of `brain` over their baselines, in one process: search over its full-text statement, hybrid_search over
`index.search`, and save_memory over a paths add, each inside a group commit.

`--keep FOLDER` keeps the filled store for the next run.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.search import index, lexical
from kernel.server import app
from kernel.store.context import CallContext
from kernel.store.transaction import Tx
from loadtests.lib import corpus, store_fixtures
from loadtests.lib.servers import budget, budgets, finish, machine, options, paired, table

_SIZE = 100_000
_ENTITIES = 1_000
_QUESTIONS = 200
_GROUP = 5_000
_TOGETHER = 64
_CATEGORIES = ("fact", "decision", "learning", "preference", "observation", "pattern")
_PLACE: list[tuple[str, str | None]] = [("brain:core", "memory")]
_EVERY: list[tuple[str, str | None]] = [("brain:core", kind) for kind in ("memory", "entity", "note")]
_LIMIT = 20


class Pair(NamedTuple):
    """Seconds of one call of the tool, and of its baseline."""

    tool: float
    bare: float


class Side(NamedTuple):
    """A tool and the baseline it is measured against."""

    name: str
    tool: Callable[[Tx, str], Any]
    bare: Callable[[Tx, str], Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a tool found nothing for a question with an answer."""
    chosen = options(
        __doc__,
        arguments,
        rounds=3,
        size={"type": int, "default": _SIZE, "help": "memories in the store"},
        keep={"type": Path, "help": "folder for the filled store"},
    )
    machine()
    size = 2_000 if chosen.quick else chosen.size
    with tempfile.TemporaryDirectory() as temporary:
        data = _filled(chosen.keep or Path(temporary), size)
        context = app.context_of(Config(data))
        reader = Connection(Config(data).file, context, readonly=True)
        reader.load_vectors()
        asked = [question.text for question in corpus.questions(min(_QUESTIONS, size), size)]
        complaints = [
            f"nothing was found for {text!r}" for text in asked if not reader.read(_who("search"), _hits(text))
        ]
        sides = (
            Side("search, memories", _search(["memory"]), _statement(reader, asked)),
            Side("search, memories and entities", _search(None), _statement(reader, asked)),
            Side("hybrid_search, memories", _hybrid(["memory"]), _kernel(_PLACE)),
            Side("hybrid_search, all types", _hybrid(None), _kernel(_EVERY)),
        )
        taken = {side.name: _asked(reader, side, asked, chosen.rounds) for side in sides}
        reader.close()
        written = _written(Config(data), context, size, 4 if chosen.quick else 20 * chosen.rounds)
    _report(taken, written, size)
    return finish(complaints)


def _report(taken: dict[str, list[Pair]], written: list[Pair], size: int) -> None:
    rows = [(name, *_figures(pairs)) for name, pairs in taken.items()]
    table(f"one call at {size:,} memories, microseconds, median", ("tool", "tool", "bare", "ratio of medians"), rows)
    figures = _figures([Pair(pair.tool / _TOGETHER, pair.bare / _TOGETHER) for pair in written])
    header = ("what", "save_memory", "paths add", "median of ratios")
    ratio = paired([pair.tool for pair in written], [pair.bare for pair in written])
    table(f"one of {_TOGETHER} writes in a commit, microseconds", header, [("a row", *figures[:2], ratio)])
    promised = [budget("save_memory over a paths add, inside a group commit", ratio, 1.5)]
    if size >= _SIZE:
        promised += [budget(f"{name}, over its baseline", _figures(pairs)[2], 2) for name, pairs in taken.items()]
    budgets(promised)


def _figures(pairs: Sequence[Pair]) -> tuple[float, float, float]:
    tool, bare = (median(pair[side] for pair in pairs) * 1e6 for side in (0, 1))
    return tool, bare, tool / bare


def _filled(folder: Path, size: int) -> Path:
    data = folder / f"brain-{size}"
    done = data / "complete"
    if not done.exists():
        config = Config(data)
        context = app.context_of(config)
        app.prepare_data(config, context)
        db = Connection(config.file, context, readonly=False, durable=False)
        db.load_vectors()
        memories = corpus.memories(size)
        while group := list(islice(memories, _GROUP)):
            with db.writing(_who("save_memory")) as tx:
                _many(tx, "save_memory", [_memory(memory) for memory in group])
        with db.writing(_who("create_entity")) as tx:
            for number in range(min(_ENTITIES, size)):
                about = corpus.memory(number * 7)
                _run(tx, "create_entity", {"db": "core", "name": " ".join(about.topic[:2]), "type": "concept"})
        db.checkpoint(truncate=True)
        db.close()
        done.touch()
    return data


def _memory(memory: corpus.Memory) -> dict[str, Any]:
    category = _CATEGORIES[len(memory.text) % len(_CATEGORIES)]
    return {"db": "core", "content": memory.text, "category": category, "tags": list(memory.topic[:2])}


def _run(tx: Tx, name: str, arguments: dict[str, Any]) -> Any:
    _, tool = store_fixtures.named(name)
    return tool.handler(tx, tool.request(**arguments))


def _many(tx: Tx, name: str, calls: Sequence[dict[str, Any]]) -> Any:
    _, tool = store_fixtures.named(name)
    assert tool.hooks.batch is not None
    return tool.hooks.batch(tx, [tool.request(**arguments) for arguments in calls])


def _who(tool: str) -> CallContext:
    return CallContext("brain", tool, "bench")


def _search(types: list[str] | None) -> Callable[[Tx, str], Any]:
    return lambda tx, text: _run(tx, "search", {"db": "core", "query": text, "types": types, "limit": _LIMIT})


def _hybrid(types: list[str] | None) -> Callable[[Tx, str], Any]:
    return lambda tx, text: _run(tx, "hybrid_search", {"db": "core", "query": text, "types": types, "limit": _LIMIT})


def _kernel(within: list[tuple[str, str | None]]) -> Callable[[Tx, str], Any]:
    return lambda tx, text: index.search(tx, text, within=within)


def _hits(text: str) -> Callable[[Tx], Any]:
    return lambda tx: _search(["memory"])(tx, text).memories and _hybrid(["memory"])(tx, text).results


def _statement(reader: Connection, asked: Sequence[str]) -> Callable[[Tx, str], Any]:
    """The full-text statements alone, with the FTS5 expressions that search builds from each question."""
    visits: dict[str, list[tuple[Any, ...]]] = {text: [] for text in asked}
    visit = lexical._match_rows

    def note(text: str) -> Callable[..., Any]:
        def noting(tx: Tx, *sought: Any) -> Any:
            visits[text].append(sought)
            return visit(tx, *sought)

        return noting

    for text in asked:
        lexical._match_rows = note(text)
        reader.read(_who("search"), lambda tx, text=text: index.search(tx, text, within=_PLACE, semantic=False))
    lexical._match_rows = visit
    return lambda tx, text: [visit(tx, *sought) for sought in visits[text]]


def _asked(reader: Connection, side: Side, asked: Sequence[str], count: int) -> list[Pair]:
    """Run both sides on every question, in reverse order for every second one."""
    pairs: list[Pair] = []
    for number, text in enumerate([*asked] * count):
        times: dict[Any, float] = {}
        for work in (side.tool, side.bare) if number % 2 else (side.bare, side.tool):
            times[work] = _timed(lambda work=work, text=text: reader.read(_who("search"), lambda tx: work(tx, text)))
        pairs.append(Pair(times[side.tool], times[side.bare]))
    return pairs


def _written(config: Config, context: Any, size: int, groups: int) -> list[Pair]:
    db = Connection(config.file, context, readonly=False)
    db.load_vectors()
    pairs: list[Pair] = []
    for number in range(groups):
        first = size + number * _TOGETHER
        some = [corpus.memory(at) for at in range(first, first + _TOGETHER)]
        saved = [_memory(memory) for memory in some]
        added = [{"path": f"{time.time_ns()}/{memory.path}", "content": memory.text} for memory in some]
        works = {
            "save_memory": lambda saved=saved: _group(db, "save_memory", saved),
            "add_memory": lambda added=added: _group(db, "add_memory", added),
        }
        order = list(works) if number % 2 else list(works)[::-1]
        times = {name: _timed(works[name]) for name in order}
        pairs.append(Pair(times["save_memory"], times["add_memory"]))
    db.close()
    return pairs


def _group(db: Connection, name: str, calls: Sequence[dict[str, Any]]) -> None:
    """The writer's work for a group: embed, write in one transaction, wait for the disk."""
    dialect, _ = store_fixtures.named(name)
    with db.writing(CallContext(dialect.name, name, "bench")) as tx:
        _many(tx, name, calls)


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    raise SystemExit(main())

"""The pages of the console: time to the first byte and size, beside the tool they call; start and memory without them.

`--keep FOLDER` keeps the filled stores for the next run (two gigabytes for a million memories). `--against CHECKOUT`
compares the processor time of each page with that of the server of another checkout instead, over the same memories.
"""

import http.client
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from urllib.parse import quote

from loadtests.lib import corpus, store_fixtures
from loadtests.lib.servers import Server, budget, budgets, finish, machine, options, quipu, rounds, table

_SIZES = (10_000, 1_000_000)
_QUESTIONS = 100
_WARMING = 10
_PAGES = ("overview", "timeline", "audit", "calls", "connect", "health", "memory", "search", "review", "keys")
_MOST_MS, _MOST_OVER_RECALL_MS, _FIRST_BYTE_MS = 50.0, 10.0, 5.0
_PAGE_BYTES, _STATIC_BYTES = 40_000, 30_000
_AT_SIZE = 1_000_000
_STARTS = 7
_MOST_OVER_OTHER, _COMPARED_SIZE, _COMPARED_QUESTIONS, _WRITERS = 1.3, 10_000, 20, 16
_SHORT = 5  # rounds of 20 visits in the place of each: they take a tenth of a second
_IDLE_SECONDS = 0.02  # of processor time in a second, when nothing is left to index

Budgets = list[tuple[str, str, str, str]]


class Visitor:
    """One connection that is kept open."""

    def __init__(self, port: int) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def get(self, path: str) -> tuple[float, bytes]:
        """The milliseconds to the first byte of a page, and the page."""
        return self._ask("GET", path, None)

    def recall(self, query: str) -> tuple[float, bytes]:
        """The tool as the page calls it."""
        asked = {"detail": "text", "limit": 10, "max_tokens": 20_000, "explain": True}
        return self._ask("POST", "/tools/recall", json.dumps({"query": query, **asked}).encode())

    def plain_recall(self, query: str) -> tuple[float, bytes]:
        """The tool with a query alone."""
        return self._ask("POST", "/tools/recall", json.dumps({"query": query}).encode())

    def add(self, memory: corpus.Memory) -> None:
        body = {"path": memory.path, "content": memory.text}
        self._ask("POST", "/tools/add_memory", json.dumps(body).encode())

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[float, bytes]:
        headers = {"content-type": "application/json", "accept": "application/json"} if body else {}
        begun = time.perf_counter()
        self._line.request(method, path, body, headers)
        answer = self._line.getresponse()
        took = (time.perf_counter() - begun) * 1000
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: {text[:200]!r}")
        return took, text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if a page was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=7,
        sizes={"type": int, "nargs": "+", "default": _SIZES, "help": "memories in the store"},
        keep={"type": Path, "help": "folder for the filled stores"},
        against={"type": Path, "help": "another checkout, whose pages are compared"},
    )
    machine()
    if chosen.against:
        return _compared(chosen.against, 500 if chosen.quick else _COMPARED_SIZE, chosen.rounds * _SHORT)
    promised: Budgets = []
    with tempfile.TemporaryDirectory(dir=chosen.keep) as temporary:
        folder = chosen.keep or Path(temporary)
        for size in (500,) if chosen.quick else chosen.sizes:
            data = store_fixtures.alone(folder, size)
            promised += _pages(data, size)
            promised += _searches(data, size)
        promised += _unasked(store_fixtures.alone(folder, 500), 1 if chosen.quick else _STARTS)
    budgets(promised)
    return finish([])


def _compared(checkout: Path, size: int, count: int) -> int:
    """The processor time of each page of this checkout beside another's, in turn, over the same memories."""
    memories = [*corpus.memories(size, 0)]
    questions = [question.text for question in corpus.questions(_COMPARED_QUESTIONS, size)]
    with (
        tempfile.TemporaryDirectory() as folder,
        quipu(Path(folder, "this")) as this,
        quipu(Path(folder, "other"), checkout=checkout) as other,
    ):
        for server in (this, other):
            _fill(server, memories)

        def cpu(server: Server, path: str) -> float:
            """Processor time of a page, or without a path of the recall that a search makes."""
            visitor, begun = Visitor(server.port), server.cpu()
            for question in questions:
                if path:
                    visitor.get(path.replace("QUESTION", quote(question)))
                else:
                    visitor.recall(question)
            return (server.cpu() - begun) * 1000 / len(questions)

        rows, pages = list[tuple[str, float, float, float]](), {name: _path(name) for name in _PAGES}
        for name, path in {**pages, "answer": "/ui/search?q=QUESTION", "recall alone": ""}.items():
            for server in (this, other):  # once for what is read at the first time
                cpu(server, path)
            turns = rounds(count, {"this": partial(cpu, this, path), "other": partial(cpu, other, path)})
            least = min(turns["this"]), min(turns["other"])
            rows.append((name, *least, least[0] / least[1]))
    title = f"least processor time of a page over {size:,} memories, ms"
    table(title, ("page", "this checkout", "the other", "ratio"), rows)
    budgets([budget(f"{name} over the other", ratio, _MOST_OVER_OTHER) for name, *_, ratio in rows])
    return finish([])


def _fill(server: Server, memories: Sequence[corpus.Memory]) -> None:
    """Add memories, and wait until the server has nothing left to do for them."""

    def add(first: int) -> None:
        visitor = Visitor(server.port)
        for memory in memories[first::_WRITERS]:
            visitor.add(memory)

    with ThreadPoolExecutor(_WRITERS) as writers:
        list(writers.map(add, range(_WRITERS)))
    used = 0.0
    while server.cpu() - used > _IDLE_SECONDS:
        used = server.cpu()
        time.sleep(1)


def _path(name: str) -> str:
    key = next(iter(corpus.memories(1, 0))).path
    return {"overview": "/ui", "memory": f"/ui/memory?id=paths/{quote(key)}"}.get(name, f"/ui/{name}")


def _pages(data: Path, size: int) -> Budgets:
    rows: list[tuple[str, float, float, float, int]] = []
    with quipu(data) as server:
        visitor = Visitor(server.port)
        for name in _PAGES:
            path = _path(name)
            begun = server.cpu()
            times, page = _times(lambda path=path: visitor.get(path))
            cpu = (server.cpu() - begun) * 1000 / (_QUESTIONS + _WARMING)
            rows.append((name, median(times), _p95(times), cpu, len(page)))
    table(f"pages over {size:,} memories", ("page", "first byte ms", "p95 ms", "cpu ms", "bytes"), rows)
    found = {row[0]: row for row in rows}
    promised = [budget(f"bytes of the largest page at {size:,}", max(row[4] for row in rows), _PAGE_BYTES)]
    if size >= _AT_SIZE:
        promised.append(budget(f"p95 of Overview at {size:,}, ms", found["overview"][2], _MOST_MS))
    else:
        promised.append(budget(f"first byte of Overview at {size:,}, ms", found["overview"][1], _FIRST_BYTE_MS))
    return promised


def _searches(data: Path, size: int) -> Budgets:
    texts = [question.text for question in corpus.questions(min(_QUESTIONS, size), size)]
    with quipu(data) as server:
        visitor = Visitor(server.port)
        for text in texts[:_WARMING]:
            visitor.get(f"/ui/search?q={quote(text)}")

        def all_of(ask: Callable[[str], tuple[float, bytes]]) -> tuple[float, list[float]]:
            begun = server.cpu()
            times = [ask(text)[0] for text in texts]
            return (server.cpu() - begun) * 1000 / len(texts), times

        page = partial(all_of, lambda text: visitor.get(f"/ui/search?q={quote(text)}"))
        tools = {"recall of the page": visitor.recall, "recall": visitor.plain_recall}
        turns = rounds(3, {"page": page, **{name: partial(all_of, ask) for name, ask in tools.items()}})
    times = {name: [one for _, several in found for one in several] for name, found in turns.items()}
    cpu = {name: min(one for one, _ in found) for name, found in turns.items()}
    rows = [(name, median(several), _p95(several), cpu[name]) for name, several in times.items()]
    table(f"search over {size:,} memories", ("side", "p50 ms", "p95 ms", "least cpu ms"), rows)
    over = cpu["page"] - cpu["recall"]
    promised = [budget(f"processor time of Search over a plain recall at {size:,}, ms", over, _MOST_OVER_RECALL_MS)]
    if size >= _AT_SIZE:
        promised.append(budget(f"p95 of Search at {size:,}, ms", rows[0][2], _MOST_MS))
    return promised


def _unasked(data: Path, count: int) -> Budgets:
    """Start and memory of a server whose console is never asked for, beside one that has none."""

    def start(ui: str) -> tuple[float, float]:
        with quipu(data, ui=ui) as server:
            begun = server.cpu()
            visitor = Visitor(server.port)
            for _ in range(_WARMING):
                visitor.recall("garage")
            return begun, server.anonymous()

    turns = rounds(count, {"with": lambda: start("1"), "without": lambda: start("0")})
    rows = [(name, min(one[0] for one in found), min(one[1] for one in found)) for name, found in turns.items()]
    table(f"a server that nobody visits, least of {count}", ("console", "start cpu s", "anonymous MB"), rows)
    return [
        budget("processor time of a start with over without", rows[0][1] / rows[1][1], 1.05),
        budget("memory with over without", rows[0][2] / rows[1][2], 1.02),
    ]


def _times(ask: Callable[[], tuple[float, bytes]]) -> tuple[list[float], bytes]:
    for _ in range(_WARMING):
        ask()
    found = [ask() for _ in range(_QUESTIONS)]
    return [took for took, _ in found], found[-1][1]


def _p95(times: Sequence[float]) -> float:
    return sorted(times)[int(0.95 * (len(times) - 1))]


if __name__ == "__main__":
    raise SystemExit(main())

"""A recall profiled in this process: its results, its recall against exact search, and the time of each step."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np

from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.search import index, lexical
from kernel.search.ann import VectorIndex
from kernel.server import app
from kernel.store.context import CallContext
from kernel.store.transaction import Tx
from loadtests.lib import store_fixtures

_CALL_CONTEXT = CallContext("common", "recall", "bench")
_SOME = "SELECT id, vector FROM doc_vector WHERE id > :after AND scale > 0 ORDER BY id LIMIT 50000"
_CLOSE = 1e-6
_WHOLE = "recall, whole"
_DIALECT, _TOOL = store_fixtures.named("recall")
_MODULE = sys.modules[_TOOL.handler.__module__]
# What is timed by itself, where the kernel has it under this name: the rest of its caller's time stays with the caller.
_PARTS: tuple[tuple[Any, str], ...] = (
    (Tx, "embed"),
    (VectorIndex, "extend"),
    (VectorIndex, "nearest"),
    (index, "search"),
    (index, "bm25_search"),
    (index, "vector_search"),
    (index, "fuse"),
    (index, "documents"),
    (Tx, "tokenize"),
    (lexical, "bm25"),
    (lexical, "candidate_queries"),
    (_MODULE, "_filtered"),
    (_MODULE, "_within_budget"),
)


class RecallProfile:
    """The kernel's search over one data directory, on a reader of its own."""

    def __init__(self, data: Path) -> None:
        config = Config(data)
        self._context = app.context_of(config)
        self._db = Connection(config.file, self._context, readonly=True)
        self._db.load_vectors()
        self._decode = msgspec.json.Decoder(_TOOL.request).decode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._db.close()

    def answer(self, query: str) -> list[str]:
        """The ids that recall returns, best first."""
        found = self._read(lambda tx: _TOOL.handler(tx, _TOOL.request(query=query)))
        return [memory.id for memory in found.memories]

    def recall_at_10(self, queries: Sequence[str]) -> float:
        """The share of the ten nearest by exact cosine that the vector stage finds; ties count as found."""
        assert self._context.embedder is not None
        asked = [
            np.frombuffer(found.vector, np.int8).astype(np.float32) for found in self._context.embedder.embed(queries)
        ]
        wanted = np.stack([vector / np.linalg.norm(vector) for vector in asked])
        best = np.full((len(queries), 0), 0.0, np.float32)
        after = count = 0
        while rows := self._db.values(_SOME, {"after": after}):
            matrix = np.frombuffer(b"".join(row[1] for row in rows), np.int8).reshape(len(rows), -1).astype(np.float32)
            matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
            best = np.sort(np.concatenate([best, wanted @ matrix.T], axis=1), axis=1)[:, -10:]
            after, count = rows[-1][0], count + len(rows)
        shares: list[float] = []
        for query, tenth in zip(queries, best[:, 0], strict=True):
            hits = self._read(lambda tx, query=query: index.search(tx, query, limit=10, lexical=False))
            shares.append(sum((hit.similarity or 0.0) >= tenth - _CLOSE for hit in hits) / min(10, count))
        return sum(shares) / len(shares)

    def signals(self, queries: Sequence[str]) -> list[tuple[str, float, float]]:
        """Median and 90th percentile in microseconds of full-text, vector and hybrid search and of a recall."""
        kinds: dict[str, Callable[[Tx, str], Any]] = {
            "search, words only": lambda tx, query: index.search(tx, query, semantic=False),
            "search, meaning only": lambda tx, query: index.search(tx, query, lexical=False),
            "search, both": index.search,
            _WHOLE: self._recall,
        }
        taken: dict[str, list[float]] = defaultdict(list)
        for query in queries:
            for name, work in kinds.items():
                begun = time.perf_counter()
                self._read(lambda tx, query=query, work=work: work(tx, query))
                taken[name].append(time.perf_counter() - begun)
        return [(name, median(spent) * 1e6, _p90(spent) * 1e6) for name, spent in taken.items()]

    def steps(self, queries: Sequence[str]) -> list[tuple[str, float, float]]:
        """Mean and 90th percentile of the self time of each step of a recall."""
        with _traced() as trace:
            for query in queries:
                trace.time(_WHOLE, lambda query=query: self._read(lambda tx: self._recall(tx, query)))
                trace.turn()
        rows = [(name, sum(spent) / len(spent) * 1e6, _p90(spent) * 1e6) for name, spent in trace.taken.items()]
        total = sum(row[1] for row in rows)
        rows = [(name if name != _WHOLE else "the rest", mean, high) for name, mean, high in rows]
        return [*sorted(rows, key=lambda row: -row[1]), ("sum", total, 0.0)]

    def _recall(self, tx: Tx, query: str) -> Any:
        request = self._decode(msgspec.json.encode({"query": query}))
        return _DIALECT.reply(_TOOL, _TOOL.handler(tx, request))

    def _read(self, work: Callable[[Tx], Any]) -> Any:
        return self._db.read(_CALL_CONTEXT, work)


class _Trace:
    """Self time in seconds by name, gathered per query."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}
        self._inner: list[float] = []
        self._turn: dict[str, float] = defaultdict(float)
        self._turns = 0

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        self._inner.append(0.0)
        try:
            return work()
        finally:
            spent = time.perf_counter() - begun
            self._turn[name] += spent - self._inner.pop()
            if self._inner:
                self._inner[-1] += spent

    def turn(self) -> None:
        """End one query."""
        for name, spent in self._turn.items():
            self.taken.setdefault(name, [0.0] * self._turns).append(spent)
        self._turns += 1
        for spent in self.taken.values():
            spent.extend([0.0] * (self._turns - len(spent)))
        self._turn.clear()


@contextmanager
def _traced() -> Generator[_Trace]:
    """Time every statement and the functions above while the block runs."""
    trace = _Trace()
    parts = [(owner, name, getattr(owner, name)) for owner, name in _PARTS if hasattr(owner, name)]
    statements = [(Tx, name, getattr(Tx, name)) for name in ("one", "all")]
    for owner, name, work in parts:
        setattr(owner, name, _timed(trace, f"{getattr(owner, '__name__', '').split('.')[-1]}.{name}", work))
    for owner, name, work in statements:
        setattr(owner, name, _statement(trace, work))
    try:
        yield trace
    finally:
        for owner, name, work in parts + statements:
            setattr(owner, name, work)


def _timed(trace: _Trace, label: str, work: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **more: trace.time(label, lambda: work(*args, **more))


def _statement(trace: _Trace, work: Callable[..., Any]) -> Callable[..., Any]:
    return lambda tx, statement, /, *args, **more: trace.time(
        f"SQL {statement}", lambda: work(tx, statement, *args, **more)
    )


def _p90(spent: Sequence[float]) -> float:
    return sorted(spent)[int(len(spent) * 0.9)]

"""Processor time of a recall over HTTP, over the limit and under the naive form without stop words, by size.

The limit is what the same work costs without anything around it: one statement for the first 600 rows that match, with
FTS5's BM25, and one SIMD comparison of the question with every int8 vector, or beyond 200,000 with every sketch.
`--keep FOLDER` keeps the filled stores for the next run.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import numpy as np
import simsimd

from kernel.core.config import MODEL, Config
from kernel.embed.model import Embedder
from kernel.engines.sqlite.connection import Connection
from kernel.search.ann import EXACT_ROWS
from kernel.search.query import STOP_WORDS
from kernel.store.context import StoreContext
from loadtests.lib import corpus, http_requests, store_fixtures
from loadtests.lib.http_load import Request, drive
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

_SIZES = (1_000, 10_000, 100_000)
_MOST_OVER_LIMIT = {1_000: 6.0, 10_000: 3.0, 100_000: 2.5, 1_000_000: 2.0}
_LEAST_UNDER_NAIVE = {1_000: 2.0, 10_000: 3.5, 100_000: 12.0, 1_000_000: 100.0}
_QUESTIONS = 100
_ROWS = "SELECT rowid, bm25(doc_fts, 1.0, 1.0, 0.0) FROM doc_fts WHERE doc_fts MATCH :query LIMIT 600"
_PAGE = "SELECT id, vector, sketch FROM doc_vector WHERE id > :after AND scale > 0 ORDER BY id LIMIT 50000"


class _Cost(NamedTuple):
    """Milliseconds of processor time a question: the limit, `recall`, the naive form; and the two ratios."""

    size: str
    limit: float
    recall: float
    naive: float
    over_limit: float
    under_naive: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=5,
        sizes={"type": int, "nargs": "+", "default": _SIZES, "help": "memories in the store"},
        keep={"type": Path, "help": "folder for the filled stores"},
    )
    machine()
    complaints: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        costs = {
            size: _cost(store_fixtures.filled(folder, size), size, chosen.rounds, complaints)
            for size in ((500,) if chosen.quick else chosen.sizes)
        }
    titles = "memories", "limit ms", "recall ms", "naive ms", "over the limit", "naive over recall"
    table(f"processor time of a recall, {chosen.rounds} rounds (medians)", titles, [*costs.values()])
    budgets(
        [
            row
            for size, one in costs.items()
            if size in _MOST_OVER_LIMIT
            for row in (
                budget(f"recall over the limit at {size:,}", one.over_limit, _MOST_OVER_LIMIT[size]),
                budget(f"naive over recall at {size:,}", one.under_naive, _LEAST_UNDER_NAIVE[size], least=True),
            )
        ]
    )
    return finish(complaints)


def _cost(data: Path, size: int, count: int, complaints: list[str]) -> _Cost:
    texts = [question.text for question in corpus.questions(min(_QUESTIONS, size), size)]
    # The naive form has no floor either: each question has ten answers on both sides.
    asked = [{"query": text, "floor": "none"} for text in texts]
    sent = [http_requests.mcp("modern", "recall", each, b'"memories":[{"id":') for each in asked]
    bodies = [msgspec.json.encode({"query": text, "stop_words": False}) for text in texts]
    asked = [Request(http_requests.post("/search", body), (b'"memories":[{"id":',)) for body in bodies]
    with ExitStack() as stack:
        ours = stack.enter_context(quipu(data))
        naive = stack.enter_context(served("loadtests.baselines.naive_server", "--data", str(data)))
        naive.wait()
        asked = asked[: _QUESTIONS if size <= 100_000 else 10]  # the naive form takes seconds in a large store
        for server, requests in ((ours, sent), (naive, asked)):
            drive(server.port, islice(requests, 20), callers=1)
        sides: dict[str, Callable[[], float]] = {
            "limit": _limit(data, texts),
            "recall": partial(_server_time, ours, sent, complaints),
            "naive": partial(_server_time, naive, asked, complaints),
        }
        seen = rounds(count, sides)
    limit, recall, other = (median(seen[name]) for name in ("limit", "recall", "naive"))
    ratios = paired(seen["recall"], seen["limit"]), paired(seen["naive"], seen["recall"])
    return _Cost(f"{size:,}", limit, recall, other, ratios[0], ratios[1])


def _server_time(server: Server, requests: Sequence[Request], complaints: list[str]) -> float:
    """Milliseconds of the server's processor time a question."""
    before = server.cpu()
    seen = drive(server.port, requests, callers=1)
    if seen.errors:
        complaints.append(seen.complaint)
    return (server.cpu() - before) / len(requests) * 1e3


def _limit(data: Path, texts: Sequence[str]) -> Callable[[], float]:
    db = Connection(Config(data).file, StoreContext({}), readonly=True)
    embedder = Embedder(MODEL)
    vectors = [embedded.vector for embedded in embedder.embed(texts)]
    metric, dtype, matrix = _codes(db)
    width = matrix.shape[1]
    asked = [np.frombuffer(vector, matrix.dtype)[None, :width] for vector in vectors]
    words = [[word for word in text.replace("?", "").split() if word.lower() not in STOP_WORDS] for text in texts]
    queries = [" OR ".join('"' + word.replace('"', '""') + '"' for word in some) for some in words]

    def milliseconds() -> float:
        begun = time.process_time()
        for query, vector in zip(queries, asked, strict=True):
            db.values(_ROWS, {"query": query})
            simsimd.cdist(vector, matrix, metric, dtype=dtype)
        return (time.process_time() - begun) / len(texts) * 1e3

    milliseconds()
    return milliseconds


def _codes(db: Connection) -> tuple[Any, Any, "np.ndarray[Any, Any]"]:
    """What the question is compared with: the vectors, or in a large store the sketches."""
    after, sizes, pages = 0, (1, 1), list[tuple[bytes, bytes]]()
    while rows := db.values(_PAGE, {"after": after}):
        pages.append((b"".join(row[1] for row in rows), b"".join(row[2] for row in rows)))
        after, sizes = rows[-1][0], (len(rows[0][1]), len(rows[0][2]))
    vectors = np.frombuffer(b"".join(page[0] for page in pages), np.int8).reshape(-1, sizes[0])
    if len(vectors) <= EXACT_ROWS:
        return "dot", "int8", vectors
    return "hamming", "bin8", np.frombuffer(b"".join(page[1] for page in pages), np.uint8).reshape(-1, sizes[1])


if __name__ == "__main__":
    raise SystemExit(main())

"""`memory_query` where no entry holds the words, and at a past time, against a search with hits and against `list`.

Processor time of whole calls without the transport, in this process. Every answer is checked: whether it has results,
and totals at a past time against a count of the rows. `--keep FOLDER` keeps the filled stores for the next run.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.server import app
from loadtests.benchmarks.scopes import CALL_CONTEXT, Ask, Scope, Work, filled, timed, whole_call
from loadtests.lib import corpus
from loadtests.lib.servers import budget, budgets, finish, machine, options, paired, rounds, table

_SIZES = (10_000, 50_000)
_QUESTIONS = 36
_MISS_BUDGET = 1.5
_PAST_BUDGET = 3.0
_SEARCH, _NO_HIT, _WORDS, _WORDS_NO_HIT = "search", "search, no hit", "search by words", "search by words, no hit"
_PARTS = "search by words, parts of words"
_LIST, _LIST_CHAIN, _PAST, _PAST_CONTEXT = "list", "list, inherited", "search asOf", "context asOf"
_RATIOS = (
    (_NO_HIT, _SEARCH, _MISS_BUDGET),
    (_WORDS_NO_HIT, _WORDS, _MISS_BUDGET),
    (_PAST, _LIST, _PAST_BUDGET),
    (_PAST_CONTEXT, _LIST, _PAST_BUDGET),
    (_PAST, _LIST_CHAIN, _PAST_BUDGET),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=3,
        sizes={"type": int, "nargs": "*", "default": _SIZES, "help": "entries in the chain"},
        keep={"type": Path, "help": "folder for the filled stores"},
    )
    machine()
    complaints: list[str] = []
    rows: list[tuple[str, str, str, str]] = []
    with tempfile.TemporaryDirectory() as temporary:
        for size in (600,) if chosen.quick else chosen.sizes:
            data = filled((chosen.keep or Path(temporary)) / f"scopes-{size}", size)
            complaints += _measure(data, size, chosen.rounds, rows)
    budgets(rows)
    return finish(complaints)


def _measure(data: Path, size: int, turns: int, rows: list[tuple[str, str, str, str]]) -> list[str]:
    db = Connection(Config(data).file, app.context_of(Config(data)), readonly=True)
    db.load_vectors()
    chain = msgspec.json.decode((data / "chain.json").read_bytes(), type=list[Scope])
    halfway = db.values("SELECT created_at FROM scopes_entry ORDER BY seq LIMIT 1 OFFSET :half", {"half": size // 2})
    sides = _sides(chain, str(halfway[0][0]))
    questions = [one.text for one in corpus.questions(_QUESTIONS, size)]
    misses = list(islice((text for text in _gibberish() if not _total(db, sides[_NO_HIT], text)), _QUESTIONS))
    texts_of = dict.fromkeys(sides, questions) | {_NO_HIT: misses, _WORDS_NO_HIT: misses, _PARTS: _parts(size)}
    complaints = _complaints(db, sides, texts_of, str(halfway[0][0]))

    def measure(name: str, work: Work) -> Callable[[], list[float]]:
        return lambda: timed(db, work, texts_of[name])

    taken = rounds(turns, {name: measure(name, work) for name, work in sides.items()})
    db.close()
    halves = {name: [median(run) for run in runs] for name, runs in taken.items()}
    title = f"{size:,} entries: {_QUESTIONS} calls, {turns} rounds of processor time (the least p50 of the rounds)"
    table(title, ("call", "p50 ms"), [(name, min(found)) for name, found in halves.items()])
    for one, other, bound in _RATIOS:
        rows.append(budget(f"{size:,}: {one} over {other}", paired(halves[one], halves[other]), bound))
    return complaints


def _sides(chain: Sequence[Scope], at: str) -> dict[str, Work]:
    kind, scope_id = chain[0]
    search: dict[str, Any] = {"action": "search", "scope": {"type": kind, "id": scope_id}}
    scope: dict[str, Any] = {"scopeType": kind, "scopeId": scope_id}
    by_meaning: Ask = lambda text: {**search, "search": text}  # noqa: E731
    by_words: Ask = lambda text: {**search, "search": text, "semanticSearch": False}  # noqa: E731
    return {
        _SEARCH: whole_call(by_meaning),
        _NO_HIT: whole_call(by_meaning),
        _WORDS: whole_call(by_words),
        _WORDS_NO_HIT: whole_call(by_words),
        _PARTS: whole_call(by_words),
        _LIST: whole_call(lambda _: {"action": "list"}, "memory_guideline"),
        _LIST_CHAIN: whole_call(lambda _: {"action": "list", "inherit": True, **scope}, "memory_guideline"),
        _PAST: whole_call(lambda _: {**search, "asOf": at}),
        _PAST_CONTEXT: whole_call(lambda _: {"action": "context", **scope, "asOf": at}),
    }


def _gibberish() -> Iterator[str]:
    """Texts of two words that no entry holds."""
    seeded = random.Random(1)
    while True:
        yield " ".join("".join(seeded.choices("bcdfghjkqvwxz", k=7)) for _ in range(2))


def _total(db: Connection, work: Work, text: str) -> int:
    return msgspec.json.decode(db.read(CALL_CONTEXT, lambda tx: work(tx, text)).body)["meta"]["totalCount"]


def _parts(size: int) -> list[str]:
    """Words of entries without their first and last letters."""
    words = (word for memory in corpus.memories(size) for word in memory.text.split())
    return [word[1:-1] for word in islice((word for word in words if len(word) > 9 and word.isalpha()), _QUESTIONS)]


def _complaints(db: Connection, sides: Mapping[str, Work], texts: Mapping[str, Sequence[str]], at: str) -> list[str]:
    """Errors in the answers: results where there must be none, none where there must be some, or a wrong total."""
    complaints: list[str] = []
    for name, work in sides.items():
        counts = [_total(db, work, text) for text in texts[name]]
        if name in (_NO_HIT, _WORDS_NO_HIT) and any(counts):
            complaints.append(f"{name}: {counts}")
        elif name not in (_NO_HIT, _WORDS_NO_HIT, _PARTS) and not all(counts):
            complaints.append(f"{name}: nothing for {counts.count(0)} questions")
        if name in (_PAST, _PAST_CONTEXT):
            sql = "SELECT count(DISTINCT kind || name) FROM scopes_entry WHERE created_at <= :at"
            ((visible,),) = db.values(sql, {"at": at})
            complaints += [f"{name}: total {one}, the rows say {visible}" for one in {*counts} - {visible}]
    return complaints


if __name__ == "__main__":
    raise SystemExit(main())

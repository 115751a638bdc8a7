"""`memory_query` over a chain of four scopes against bare `index.search` on the same file, in this process.

Every answer is checked: totals against a count of the rows, pages against their limits. `--keep FOLDER` keeps the
filled store for the next run; `--http` also measures a server.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec

from handlers.scopes import entries
from kernel.core.config import Config
from kernel.engines.sqlite.connection import Connection
from kernel.search import index
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.transaction import Tx
from loadtests.lib import corpus, http_requests, store_fixtures
from loadtests.lib.http_load import drive
from loadtests.lib.servers import budget, budgets, finish, machine, options, paired, quipu, rounds, table

_SIZE = 50_000
_GROUP = 5000
_QUESTIONS = 200
_BUDGET = 2.0
CALL_CONTEXT = CallContext("scopes", "memory_query", "bench")
_KINDS = ("memory_tool", "memory_guideline", "memory_knowledge")
_TAGS = ("python", "security", "api", "deprecated")
_SHARED = 50  # one entry in so many has the name of one in the parent scope
_BARE, _SEARCH, _CONTEXT = "index.search", "search", "context"

Scope = tuple[str, str | None]
Work = Callable[[Tx, str], Any]
Ask = Callable[[str], dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an answer was wrong."""
    chosen = options(
        __doc__,
        arguments,
        rounds=5,
        size={"type": int, "default": _SIZE, "help": "entries in the chain"},
        keep={"type": Path, "help": "folder for the filled store"},
        http={"action": "store_true", "help": "also measure over HTTP"},
    )
    machine()
    size = 600 if chosen.quick else chosen.size
    with tempfile.TemporaryDirectory() as temporary:
        data = filled((chosen.keep or Path(temporary)) / f"scopes-{size}", size)
        texts = [question.text for question in corpus.questions(min(_QUESTIONS, size), size)]
        return finish(_measure(data, texts, chosen.rounds, over_http=chosen.http))


def _measure(data: Path, texts: Sequence[str], count: int, *, over_http: bool) -> list[str]:
    context = app.context_of(Config(data))
    db = Connection(Config(data).file, context, readonly=True)
    db.load_vectors()
    chain = msgspec.json.decode((data / "chain.json").read_bytes(), type=list[Scope])
    asks = _asks(chain)
    sides: dict[str, Work] = {_BARE: index.search, **{name: whole_call(ask) for name, ask in asks.items()}}
    complaints = _complaints(db, asks, texts[0], chain)
    for work in sides.values():
        timed(db, work, texts[:20])
    taken = rounds(count, {name: lambda work=work: timed(db, work, texts) for name, work in sides.items()})
    db.close()
    halves = {name: [_at(run, 0.5) for run in runs] for name, runs in taken.items()}
    ratios = {name: paired(found, halves[_BARE]) for name, found in halves.items()}
    rows = [(name, min(halves[name]), min(_at(run, 0.9) for run in runs), ratios[name]) for name, runs in taken.items()]
    title = f"{len(texts)} questions, {count} rounds of processor time (the least of p50 and p90; ratios are medians)"
    table(title, ("call", "p50 ms", "p90 ms", "over index.search"), rows)
    if over_http:
        _over_http(data, {name: ask for name, ask in asks.items() if name in {_SEARCH, _CONTEXT}}, texts)
    budgets([budget(f"p50 of {name} over bare index.search", ratios[name], _BUDGET) for name in (_SEARCH, _CONTEXT)])
    return complaints


def _asks(chain: Sequence[Scope]) -> dict[str, Ask]:
    """By kind of call, a function from a question to its arguments."""
    kind, scope_id = chain[0]
    search: dict[str, Any] = {"action": "search", "scope": {"type": kind, "id": scope_id}}
    context: dict[str, Any] = {"action": "context", "scopeType": kind, "scopeId": scope_id}
    return {
        _SEARCH: lambda text: {**search, "search": text},
        "search by words": lambda text: {**search, "search": text, "semanticSearch": False},
        "search with a tag": lambda text: {**search, "search": text, "tags": {"include": ["python"]}},
        "search without a text": lambda _: search,
        "search without a text, less a tag": lambda _: {**search, "tags": {"exclude": ["deprecated"]}},
        "search with a tag alone": lambda _: {**search, "tags": {"require": ["python"]}},
        _CONTEXT: lambda _: context,
        "context, compact": lambda _: {**context, "compact": True},
    }


def whole_call(ask: Ask, name: str = "memory_query") -> Work:
    """A whole call without the transport: decode arguments, run the handler, encode the answer."""
    dialect, tool = store_fixtures.named(name)
    decode = msgspec.json.Decoder(tool.request).decode
    return lambda tx, text: dialect.reply(tool, tool.handler(tx, decode(msgspec.json.encode(ask(text)))))


def timed(db: Connection, work: Work, texts: Sequence[str]) -> list[float]:
    """Milliseconds of this thread's processor time per question, which other processes hardly affect."""
    taken: list[float] = []
    for text in texts:
        begun = time.thread_time()
        db.read(CALL_CONTEXT, lambda tx, text=text: work(tx, text))
        taken.append((time.thread_time() - begun) * 1e3)
    return taken


def _at(taken: Sequence[float], share: float) -> float:
    return sorted(taken)[int(len(taken) * share)]


def _complaints(db: Connection, asks: Mapping[str, Ask], text: str, chain: Sequence[Scope]) -> list[str]:
    """Errors in the answers: no results, or totals that differ from a count of the rows."""
    answers = {
        name: msgspec.json.decode(db.read(CALL_CONTEXT, lambda tx, ask=ask: whole_call(ask)(tx, text)).body)
        for name, ask in asks.items()
    }
    scopes = [kind if scope_id is None else f"{kind}:{scope_id}" for kind, scope_id in chain]
    names = set(db.values("SELECT kind, name, scope FROM scopes_entry WHERE deactivated_at IS NULL"))
    visible = len({(kind, name) for kind, name, scope in names if scope in scopes})
    empty = [name for name, found in answers.items() if not found["meta"]["returnedCount"]]
    wrong = [
        f"{name}: totalCount {answers[name]['meta']['totalCount']}, the rows say {visible}"
        for name in ("search without a text", _CONTEXT)
        if answers[name]["meta"]["totalCount"] != visible
    ]
    return [f"{name} found nothing" for name in empty] + wrong


def _over_http(data: Path, asks: Mapping[str, Ask], texts: Sequence[str]) -> None:
    rows: list[tuple[str, float, float, float]] = []
    with quipu(data) as server:
        for name, ask in asks.items():
            requests = [http_requests.mcp("modern", "memory_query", ask(text), b'"totalCount"') for text in texts]
            drive(server.port, islice(cycle(requests), 20), callers=1)
            seen = drive(server.port, cycle(requests), callers=1, seconds=1.5)
            rows.append((name, seen.rate, seen.percentile(0.5), seen.percentile(0.99)))
    table("over HTTP, one caller", ("call", "calls/s", "p50 ms", "p99 ms"), rows)


def filled(data: Path, size: int) -> Path:
    """A data directory with entries spread over the four scopes of a chain."""
    done = data / "chain.json"
    config = Config(data)
    context = app.context_of(config)
    app.prepare_data(config, context)
    if not done.exists():
        done.write_bytes(msgspec.json.encode(_fill(config, context, size)))
    return data


def _fill(config: Config, context: StoreContext, size: int) -> list[Scope]:
    assert context.embedder is not None
    db = Connection(config.file, context, readonly=False, durable=False)
    db.load_vectors()
    chain = _chain(db)
    numbers = iter(range(size))
    while group := list(islice(numbers, _GROUP)):
        calls = list(_calls(group, chain))
        texts = [text for _, request in calls for text in entries.texts_to_embed(request)]
        with db.writing(CALL_CONTEXT) as tx:
            tx.preload(dict(zip(texts, context.embedder.embed(texts), strict=True)))
            for number, (name, request) in zip(group, calls, strict=True):
                _tag(tx, number, name, store_fixtures.named(name)[1].handler(tx, request))
    db.checkpoint(truncate=True)
    db.close()
    return chain


def _chain(db: Connection) -> list[Scope]:
    """An organization, its project and a session of that, nearest first."""
    with db.writing(CALL_CONTEXT) as tx:
        org = _do(tx, "memory_org", action="create", name="Bench").organization.id
        project = _do(tx, "memory_project", action="create", name="Bench", orgId=org).project.id
        session = _do(tx, "memory_session", action="start", projectId=project).session.id
    return [("session", session), ("project", project), ("org", org), ("global", None)]


def _calls(numbers: Sequence[int], chain: Sequence[Scope]) -> Iterator[tuple[str, Any]]:
    """An entry for each number, of each kind and scope in turn."""
    for number in numbers:
        memory = corpus.memory(number)
        name = _KINDS[number % len(_KINDS)]
        kind, scope_id = chain[(number // len(_KINDS)) % len(chain)]
        named = number - len(_KINDS) if number % _SHARED == len(_KINDS) else number
        heading = f"{corpus.memory(named).path} {named}"
        text = {"description": memory.text} if name == "memory_tool" else {"content": memory.text}
        title = {"title" if name == "memory_knowledge" else "name": heading}
        more = {"priority": number * 7919 % 101} if name == "memory_guideline" else {}
        yield name, _request(name, action="add", scopeType=kind, scopeId=scope_id, **title, **text, **more)


def _tag(tx: Tx, number: int, name: str, added: Any) -> None:
    """Add a tag to every fourth entry."""
    if number % 4 == 0:
        kind = name.removeprefix("memory_")
        tag = _TAGS[number // 4 % len(_TAGS)]
        _do(tx, "memory_tag", action="attach", entryType=kind, entryId=getattr(added, kind).id, tagName=tag)


def _request(name: str, /, **arguments: Any) -> Any:
    return msgspec.convert(arguments, store_fixtures.named(name)[1].request)


def _do(tx: Tx, name: str, /, **arguments: Any) -> Any:
    return store_fixtures.named(name)[1].handler(tx, _request(name, **arguments))


if __name__ == "__main__":
    raise SystemExit(main())

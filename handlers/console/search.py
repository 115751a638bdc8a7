"""Search: recall as agents call it, with the share of each signal in a score."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from handlers.console.overview import spaces_of
from handlers.console.reading import Site, allowed_dialects, ordered, read
from handlers.console.requests import Visit
from kernel.calls.dispatch import Dispatch
from kernel.calls.tools import Reply
from kernel.core.errors import Fault
from kernel.search.fusion import Verdict
from kernel.store.store import Store
from kernel.store.transaction import Tx

Answer = TypeVar("Answer")
TOOL = "recall"
_HITS = 10
_FRESH_SECONDS = 2.0  # of known values, since other processes write, too
_MOST_ACTORS = 50  # to choose from
_TOKENS = 20_000
_TEXTS = ("scope", "actor", "after", "before", "cursor")
_COLUMNS: Mapping[str, Callable[["Hit"], str]] = {
    "written": lambda hit: hit.provenance.updated_at if hit.provenance else ""
}
WEIGHTS = ("words", "meaning", "late", "neighbours", "recency")
# How likely a hit answers, for people.
ANSWERS: Mapping[Verdict, str] = {"strong": "likely", "weak": "may answer", "none": "weak"}
_TITLES = {"late": "word by word"}  # of the other weights the names are the titles
_NUMBERS = {_TITLES.get(name, name): number for number, name in enumerate(WEIGHTS)}


class Signal(Struct):
    name: str
    share: float

    @property
    def number(self) -> int:
        return _NUMBERS[self.name]


class Origin(Struct):
    dialect: str
    tool: str
    actor: str
    updated_at: str
    created_at: str = ""


class Explained(Struct):
    words: float
    meaning: float
    late: float
    neighbours: float
    recency: float
    alike: int
    factor: float


class Hit(Struct):
    id: str
    score: float
    text: str
    strength: float = 0.0
    verdict: Verdict | None = None
    complete: bool = True
    scope: str = ""
    provenance: Origin | None = None
    flag: str = ""
    expired: bool = False
    explained: Explained | None = None

    @property
    def answers(self) -> str:
        """Return how likely the hit answers; empty without a query."""
        return ANSWERS[self.verdict] if self.verdict else ""

    @property
    def signals(self) -> list[Signal]:
        """Return the parts of the score that are not 0."""
        shares = msgspec.structs.asdict(self.explained) if self.explained else dict[str, float]()
        return [Signal(_TITLES.get(name, name), shares[name]) for name in WEIGHTS if shares.get(name, 0) > 0]


class Recalled(Struct):
    memories: list[Hit]
    signals: list[str]
    omitted: int
    cursor: str | None = None


class Found(Struct):
    """The hits of a query, or without a query the newest memories; `dialects` are the names to choose from.

    `problem` says why a filter cannot be used; then nothing was searched. `spaces` and `actors` are known values of the
    filters; the actors only for a caller who may see every dialect.
    """

    query: str
    dialects: list[str]
    filters: dict[str, str]
    memories: list[Hit]
    signals: list[str]
    omitted: int
    cursor: str | None
    problem: str = ""
    spaces: list[str] = []
    actors: list[str] = []


async def load(_site: Site, dispatch: Dispatch, visit: Visit) -> Found:
    """Return the hits of recall, or the words of its refusal; raises Forbidden for a key that may not call it."""
    query = visit.query
    names_of_filters = (*_TEXTS, *WEIGHTS, "dialect", "space", "quarantined", "sort")
    filters = {name: query[name] for name in names_of_filters if query.get(name)}
    names, problem = [dialect.name for dialect in dispatch.dialects if not dialect.reads_all_dialects], ""
    try:
        times = {name: visit.moment(name) for name in ("after", "before") if name in filters}
        answer = await ask_recall(dispatch, visit, _arguments(query.get("q", ""), {**filters, **times}), Recalled)
    except Fault as fault:
        if fault.code != "invalid":
            raise
        answer, problem = Recalled([], [], 0), fault.message
    filters.pop("cursor", None)
    memories = (
        ordered(answer.memories, filters.get("sort", ""), _COLUMNS),
        answer.signals,
        answer.omitted,
        answer.cursor,
    )
    spaces, actors = await _known_values(dispatch, visit)
    return Found(query.get("q", ""), names, filters, *memories, problem=problem, spaces=spaces, actors=actors)


async def _known_values(dispatch: Dispatch, visit: Visit) -> tuple[list[str], list[str]]:
    """Return the values of the filters; those of all memories are read again after a commit, or after some seconds."""
    dialects, store, now = allowed_dialects(visit), dispatch.store, time.monotonic()
    if dialects is not None or visit.caller.grant.reach is not None:
        return await read(dispatch, visit, lambda tx: _values(tx, dialects))
    kept = _kept.get(store)
    if kept is None or kept.commits != store.committed or now - kept.read_at > _FRESH_SECONDS:
        kept = _kept[store] = _Kept(store.committed, now, await read(dispatch, visit, lambda tx: _values(tx, None)))
    return kept.values


class _Kept(NamedTuple):
    commits: int
    read_at: float
    values: tuple[list[str], list[str]]


_kept: WeakKeyDictionary[Store, _Kept] = WeakKeyDictionary()


def _values(tx: Tx, dialects: list[str] | None) -> tuple[list[str], list[str]]:
    spaces = [space.name for space in spaces_of(tx, dialects)]
    return spaces, tx.all("kernel.console.actors", str, limit=_MOST_ACTORS) if dialects is None else []


async def ask_recall(dispatch: Dispatch, visit: Visit, arguments: Mapping[str, Any], answer: type[Answer]) -> Answer:
    """Return the answer of the tool; raises Fault with its message, and Forbidden for a key that may not call it."""
    entry = dispatch.tools.get(TOOL)
    if entry is None:
        raise Fault("disabled", "Search needs the dialect common, which this server does not serve.")
    reply = await dispatch.call(entry, msgspec.json.encode(arguments), visit.caller)
    if not isinstance(reply, Reply):
        raise Fault("internal", "Internal error.")
    if reply.fault is not None:
        raise Fault(reply.fault, msgspec.json.decode(reply.body)["error"]["message"])
    return msgspec.json.decode(reply.body, type=answer)


def _arguments(query: str, filters: dict[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"query": query, "detail": "text", "limit": _HITS, "max_tokens": _TOKENS}
    arguments |= {"explain": True, "expired": True}
    if query.strip():
        arguments["floor"] = "none"  # the page folds hits that answer nothing, and expired ones
    arguments.update((name, filters[name]) for name in _TEXTS if name in filters)
    for singular, plural in (("dialect", "dialects"), ("space", "spaces")):
        if singular in filters:
            arguments[plural] = [filters[singular]]
    weights = {name: _weight(name, filters[name]) for name in WEIGHTS if name in filters}
    more = {"quarantined": True} if filters.get("quarantined") else {}
    return {**arguments, **more, **({"weights": weights} if weights else {})}


def _weight(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Fault("invalid", f"{name}: a weight is a number from 0 to 1") from None

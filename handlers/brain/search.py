"""Full-text search tools of `brain` (seed 003, Search Tools): one database, or several at once."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import astuple

from handlers.brain import querylog, repository, scoring
from handlers.brain.base import ALWAYS_KEPT, Fields, check_fields, databases, keep_fields, space
from handlers.brain.querylog import elapsed_ms
from handlers.brain.schemas import Database, Entity, Limit, LinkableKind, Memory
from kernel.calls.tools import Hints, Hooks, Tool, read
from kernel.search import index
from kernel.search.index import Hit
from kernel.store.transaction import Tx

_Hit = TypeVar("_Hit")


class Place(NamedTuple):
    db: str
    id: str


def expired(tx: Tx, db: str, ids: Sequence[str]) -> set[str]:
    return {key for _, key in tx.all("brain.expired", Place, keys=[(db, key) for key in ids], at=tx.now)}


def valid(
    tx: Tx, db: str, limit: int, search: Callable[[int], Sequence[_Hit]], id_of: Callable[[_Hit], str]
) -> list[_Hit]:
    """Return the hits of `search(width)` that are valid, for a width of which at least `limit` are, if there are."""
    width = limit
    while True:
        hits = search(width)
        expired_ids = expired(tx, db, [id_of(hit) for hit in hits])
        if width - len(expired_ids) >= limit:
            return [hit for hit in hits if id_of(hit) not in expired_ids]
        width = limit + 2 * len(expired_ids)


MAX_QUERY = 10_000
RESULTS_PER_DATABASE = 10

QueryText = Annotated[
    str, Meta(description="What to look for, in plain words", max_length=MAX_QUERY, pattern=r"^\s*[^\0\s][^\0]*$")
]

Kinds = Annotated[list[LinkableKind], Meta(max_length=8)]
Databases = Annotated[list[Database], Meta(max_length=64)]


class Search(Struct, forbid_unknown_fields=True):
    """Words to look for in one database."""

    db: Database
    query: QueryText
    types: Annotated[Kinds | None, Meta(description="memory, entity; both if left out")] = None
    limit: Annotated[Limit, Meta(description="Most results of each type")] = 20
    fields: Fields = None


class SearchAll(Struct, forbid_unknown_fields=True):
    """Words to look for in several databases."""

    query: QueryText
    dbs: Annotated[Databases | None, Meta(description="Which databases; all if left out")] = None
    limit: Annotated[Limit, Meta(description="Most results of each type in each database")] = RESULTS_PER_DATABASE
    fields: Fields = None


class RankedMemory(Memory, kw_only=True):
    """A memory and its BM25 rank, lower being better; without a rank it only contains the text of the query."""

    required_keys: ClassVar[Sequence[str]] = ALWAYS_KEPT

    rank: float | UnsetType = UNSET


class RankedEntity(Entity, kw_only=True):
    """An entity and its BM25 rank, lower being better; without a rank it only contains the text of the query."""

    required_keys: ClassVar[Sequence[str]] = ALWAYS_KEPT

    rank: float | UnsetType = UNSET


class DatabaseResults(Struct, dict=True):
    """The results of one database for the requested types, best first.

    The attribute `milliseconds` is for the query log; the contract has no field for it.
    """

    memories: list[RankedMemory] | UnsetType = UNSET
    entities: list[RankedEntity] | UnsetType = UNSET


def search(tx: Tx, request: Search) -> DatabaseResults:
    """Search memories and entities of one database by their words, tags and category. For a question in plain words
    hybrid_search finds more.
    """
    check_fields(request.fields, RankedMemory, RankedEntity)
    results = _search_database(tx, request.db, request.query, request.types or ["memory", "entity"], request.limit)
    keep_fields(request.fields, [*(results.memories or []), *(results.entities or [])])
    return results


def search_all(tx: Tx, request: SearchAll) -> dict[str, DatabaseResults]:
    """Search memories and entities of several databases by their words; the answer has a key for each database."""
    names = dict.fromkeys(request.dbs or databases(tx))
    for db in names:
        space(tx, db, "dbs")
    check_fields(request.fields, RankedMemory, RankedEntity)
    answer = {db: _search_database(tx, db, request.query, ["memory", "entity"], request.limit) for db in names}
    for results in answer.values():
        keep_fields(request.fields, [*(results.memories or []), *(results.entities or [])])
    return answer


def _search_database(tx: Tx, db: str, query: str, types: Sequence[LinkableKind], limit: int) -> DatabaseResults:
    start = time.perf_counter()
    places = [(space(tx, db), kind) for kind in types]
    # One search for all types costs little more than a search for a single type.

    def best(width: int) -> list[Hit]:
        return index.search(tx, query, within=places, limit=width, semantic=False, per_partition=True)

    hits = valid(tx, db, limit, best, lambda hit: hit.id)
    ranks = {hit.id: -hit.text_rank for hit in hits if hit.text_rank is not None}
    results = DatabaseResults()
    # The query without its phrase or prefix marks.
    part = {"part": query.strip().strip('"*').strip() or None, "limit": limit}
    if "memory" in types:
        memories = repository.get_many(tx, db, list(ranks))[:limit]
        memories = memories or tx.all("brain.search.memories_with_part", Memory, db=db, now=tx.now, **part)
        results.memories = [RankedMemory(*astuple(row), rank=ranks.get(row.id, UNSET)) for row in memories]
    if "entity" in types:
        entities = tx.all("brain.search.entities_by_ids", Entity, db=db, ids=list(ranks))[:limit]
        entities = entities or tx.all("brain.search.entities_with_part", Entity, db=db, **part)
        results.entities = [RankedEntity(*astuple(row), rank=ranks.get(row.id, UNSET)) for row in entities]
    vars(results)["milliseconds"] = elapsed_ms(start)
    return results


def _record(tx: Tx, request: Search | SearchAll, answer: Any) -> None:
    result: Mapping[str, DatabaseResults] = {request.db: answer} if isinstance(request, Search) else answer
    for db, part in result.items():
        scoring.record_access(tx, db, [row.id for row in part.memories or []])
    ids = [row.id for part in result.values() for row in [*(part.memories or []), *(part.entities or [])]]
    milliseconds = sum(vars(part)["milliseconds"] for part in result.values())
    querylog.log_query(tx, ",".join(result), request.query, "fts", ids, milliseconds)


TOOLS: tuple[Tool, ...] = (
    read(search, Hints("Search by words"), permission="read", hooks=Hooks(after_read=_record)),
    read(search_all, Hints("Search every database by words"), permission="read", hooks=Hooks(after_read=_record)),
)

"""The query log of `brain` (seed 003, Query Log Tools): queries without their secrets, statistics, clean-up."""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from handlers.brain.base import json_text, new_id
from handlers.brain.schemas import Limit
from kernel.calls.tools import Hints, Tool, read, write
from kernel.core.times import later
from kernel.security.rules import secrets
from kernel.store.transaction import Tx

SearchKind = Literal["hybrid", "semantic", "fts"]
GroupBy = Literal["tool", "query", "day"]
Days = Annotated[int, Meta(ge=0, le=36_500)]

REDACTED = "[redacted]"
MAX_LOGGED_CHARACTERS = 1000


class GetQueryStats(Struct, forbid_unknown_fields=True):
    """How far to look back, and what to count by."""

    days: Annotated[Days, Meta(description="Look back this many days")] = 30
    group_by: Annotated[
        GroupBy | None,
        Meta(description="tool (if left out): one row per kind of search; query: per text; day: per day"),
    ] = None
    limit: Limit = 20


class CleanupQueryLog(Struct, forbid_unknown_fields=True):
    """How old the entries to delete are."""

    older_than_days: Annotated[Days, Meta(description="Delete what is older than this many days")] = 30


class ToolsUsed(Struct):
    """How many searches of each kind."""

    hybrid: int
    semantic: int
    fts: int


class Totals(Struct):
    """All searches of the days asked for; averages are null if there was none."""

    total_queries: int
    unique_queries: int
    tools_used: ToolsUsed
    avg_results: float | None
    avg_time_ms: int | None


class ByTool(Struct):
    """The searches of one kind; times are ISO 8601 UTC."""

    tool: str
    query_count: int
    avg_results: float
    avg_time_ms: int
    first_query: str
    last_query: str


class ByQuery(Struct):
    query_text: str
    tool: str
    times_searched: int
    avg_results: float
    last_searched: str


class ByDay(Struct):
    day: str
    query_count: int
    tools_used: int
    avg_results: float
    avg_time_ms: int


class QueryStats(Struct):
    """Answer of get_query_stats, over every database; `data` are rows by what they are grouped by."""

    totals: Totals
    grouped_by: GroupBy
    data: list[Any]


class Cleaned(Struct):
    deleted: int
    older_than_days: int


def get_query_stats(tx: Tx, request: GetQueryStats) -> QueryStats:
    """Report what was searched in the last days, in all databases: how often, how many results, how long it took."""
    since = later(tx.now, -timedelta(days=request.days))
    group = request.group_by or "tool"
    totals = tx.one("brain.querylog.totals", _totals, since=since) or _totals(0, 0, 0, 0, 0, None, None)
    page = {"since": since, "limit": request.limit}
    if group == "tool":
        return QueryStats(totals, group, tx.all("brain.querylog.by_tool", ByTool, **page))
    if group == "query":
        return QueryStats(totals, group, tx.all("brain.querylog.by_query", ByQuery, **page))
    return QueryStats(totals, group, tx.all("brain.querylog.by_day", ByDay, **page))


def cleanup_query_log(tx: Tx, request: CleanupQueryLog) -> Cleaned:
    """Delete old entries of the query log, of every database."""
    count = tx.run("brain.querylog.delete", before=later(tx.now, -timedelta(days=request.older_than_days)))
    return Cleaned(count, request.older_than_days)


def log_query(tx: Tx, db: str, text: str, source: SearchKind, ids: Sequence[str], milliseconds: float) -> None:
    """Adds an answered search of some databases, whose names are separated by commas."""
    # Redacted before it is stored: users search for texts they just pasted.
    query = (new_id(tx, "qlog"), db, redact(text), source)
    tx.run("brain.querylog.insert", rows=[(*query, len(ids), json_text(list(ids)), milliseconds, None, tx.now)])


def elapsed_ms(start: float) -> float:
    """Return milliseconds since a time of `time.perf_counter`."""
    return round((time.perf_counter() - start) * 1000, 3)


def redact(text: str) -> str:
    """Return a query text with keys, tokens and passwords replaced, cut to MAX_LOGGED_CHARACTERS."""
    safe_text = secrets.redact(text, REDACTED)
    return safe_text if len(safe_text) <= MAX_LOGGED_CHARACTERS else f"{safe_text[: MAX_LOGGED_CHARACTERS - 1]}…"


def _totals(
    queries: int, unique: int, hybrid: int, semantic: int, fts: int, results: float | None, took: int | None
) -> Totals:
    return Totals(queries, unique, ToolsUsed(hybrid, semantic, fts), results, took)


TOOLS: tuple[Tool, ...] = (
    read(get_query_stats, Hints("Get query statistics"), permission="read"),
    write(cleanup_query_log, Hints("Clean up query log", destructive=True, idempotent=True), permission="admin"),
)

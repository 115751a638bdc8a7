"""The overview: totals, the latest changes, and the memories that wait for a person."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from handlers.console.reading import Site, allowed_dialects, read
from handlers.console.records import NEWEST, Call, calls, with_texts
from handlers.console.requests import Visit
from kernel.calls.dispatch import Dispatch
from kernel.observe.call_log import Hour
from kernel.store.store import Load
from kernel.store.transaction import Tx

_SPANS = (30, 7, 90)  # days that the chart can show, the usual first
_SHOWN_CALLS = 10
WEEK = 7


class Space(Struct):
    name: str
    memories: int


class Day(Struct):
    day: str
    memories: int


class Stats(Struct):
    """How much there is: memories by space, those of today and of the last seven days, bytes on disk."""

    memories: int
    today: int
    week: int
    quarantined: int
    spaces: list[Space]
    file_bytes: int
    log_bytes: int


class Overview(Struct):
    """Counts of the memories the caller may see; `days` are the last thirty, or as many as asked for, the
    oldest first.

    `backup` is when the newest copy beside the database was made, empty for none; `hour` counts the calls of the last
    hour, since the console was first opened.
    """

    memories: int
    today: int
    week: int
    spaces: list[Space]
    days: list[Day]
    waiting: int
    changes: list[Call]
    file_bytes: int
    log_bytes: int
    backup: str
    hour: Hour


async def load(site: Site, dispatch: Dispatch, visit: Visit) -> Overview:
    dialects, sizes = allowed_dialects(visit), dispatch.store.load()
    hour = site.log.last_hour(visit.caller.tenant, dialects)
    span = visit.number("days", 0)
    count = span if span in _SPANS else _SPANS[0]
    return await read(dispatch, visit, lambda tx: _overview(tx, dialects, sizes, hour, count))


def stats(tx: Tx, dialects: list[str] | None, sizes: Load, days: Sequence[Day]) -> Stats:
    """Return the counts of dialects; `days` end with today."""
    spaces = tx.all("kernel.console.spaces", Space, dialects=dialects)
    counts = [day.memories for day in days]
    waiting = tx.one("kernel.console.held", int, dialects=dialects) or 0
    memories = sum(space.memories for space in spaces)
    return Stats(memories, counts[-1], sum(counts[-WEEK:]), waiting, spaces, sizes.file_bytes, sizes.wal_bytes)


def _overview(tx: Tx, dialects: list[str] | None, sizes: Load, hour: Hour, count: int) -> Overview:
    days = days_until_now(tx, count, dialects)
    counts = stats(tx, dialects, sizes, days)
    totals = (counts.memories, counts.today, counts.week, counts.spaces)
    return Overview(
        *totals,
        days,
        counts.quarantined,
        with_texts(tx, calls(tx, NEWEST, _SHOWN_CALLS, dialects=dialects), dialects),
        counts.file_bytes,
        counts.log_bytes,
        _newest_backup(tx.context.data) if tx.context.data else "",
        hour,
    )


def _newest_backup(folder: Path) -> str:
    times = [file.stat().st_mtime for file in folder.glob("quipu-*.db")]
    return datetime.fromtimestamp(max(times), UTC).isoformat(timespec="seconds") if times else ""


def days_until_now(tx: Tx, count: int, dialects: list[str] | None) -> list[Day]:
    """Return the last days up to now, the oldest first, each with the number of memories last written on it."""
    today = datetime.fromisoformat(tx.now).date()
    names = [(today - timedelta(days=before)).isoformat() for before in reversed(range(count))]
    by_name = {day.day: day for day in tx.all("kernel.console.days", Day, since=names[0], dialects=dialects)}
    return [by_name.get(name) or Day(name, 0) for name in names]

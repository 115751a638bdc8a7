"""The overview: totals, the latest changes, and the memories that wait for a person."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from handlers.console.reading import Site, allowed_dialects, read
from handlers.console.records import NEWEST, Call, calls, with_texts
from handlers.console.requests import Visit
from kernel.calls.dispatch import Dispatch
from kernel.core.ids import utc_now
from kernel.observe.call_log import Hour
from kernel.store.store import Load
from kernel.store.transaction import Tx

_SPANS = (30, 7, 90)  # days that the chart can show, the usual first
_SHOWN_CALLS = 10
MOST_COUNTED = 1000  # memories of a scope or a folder, if they are counted singly
WEEK = 7
_HOUR_MINUTES, _MINUTE_SECONDS = 60, 60


class Space(Struct, omit_defaults=True):
    """A space and the number of its memories, `many` for at least so many."""

    name: str
    memories: int
    many: bool = False


class Day(Struct):
    day: str
    memories: int


class DayOfDialects(Day):
    """A day with the number of each dialect."""

    dialects: dict[str, int] = {}


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
    `minutes`, an hour unless the server has started since.
    """

    memories: int
    today: int
    week: int
    spaces: list[Space]
    days: list[DayOfDialects]
    waiting: int
    changes: list[Call]
    file_bytes: int
    log_bytes: int
    backup: str
    hour: Hour
    minutes: int


async def load(site: Site, dispatch: Dispatch, visit: Visit) -> Overview:
    dialects, sizes = allowed_dialects(visit), dispatch.store.load()
    hour = site.log.last_hour(visit.caller.tenant, dialects)
    span = visit.number("days", 0)
    count = span if span in _SPANS else _SPANS[0]
    counted = datetime.fromisoformat(utc_now()) - datetime.fromisoformat(site.log.since)
    minutes = min(_HOUR_MINUTES, int(counted.total_seconds() / _MINUTE_SECONDS) + 1)
    return await read(dispatch, visit, lambda tx: _overview(tx, dispatch, dialects, sizes, (hour, minutes), count))


def stats(tx: Tx, dialects: list[str] | None, sizes: Load, days: Sequence[Day]) -> Stats:
    """Return the counts of dialects; `days` end with today."""
    spaces = spaces_of(tx, dialects)
    counts = [day.memories for day in days]
    waiting = tx.one("kernel.console.held", int, dialects=dialects) or 0
    memories = sum(space.memories for space in spaces)
    return Stats(memories, counts[-1], sum(counts[-WEEK:]), waiting, spaces, sizes.file_bytes, sizes.wal_bytes)


def _overview(
    tx: Tx, dispatch: Dispatch, dialects: list[str] | None, sizes: Load, hour: tuple[Hour, int], count: int
) -> Overview:
    days = _days_of_dialects(tx, count, dialects)
    counts = stats(tx, dialects, sizes, days)
    totals = (counts.memories, counts.today, counts.week, counts.spaces)
    return Overview(
        *totals,
        days,
        counts.quarantined,
        with_texts(tx, dispatch, calls(tx, NEWEST, _SHOWN_CALLS, dialects=dialects), dialects),
        counts.file_bytes,
        counts.log_bytes,
        _newest_backup(tx.context.data) if tx.context.data else "",
        *hour,
    )


def _newest_backup(folder: Path) -> str:
    times = [file.stat().st_mtime for file in folder.glob("quipu-*.db")]
    return datetime.fromtimestamp(max(times), UTC).isoformat(timespec="seconds") if times else ""


def spaces_of(tx: Tx, dialects: list[str] | None) -> list[Space]:
    """Return the spaces with memories; of a call that is held to places, with the memories in these."""
    if not tx.is_limited:
        return tx.all("kernel.console.spaces", Space, dialects=dialects)
    rows = tx.rows("kernel.console.spaces_in_reach", dialects=dialects, most=MOST_COUNTED)
    return [Space(name, memories, many=largest >= MOST_COUNTED) for name, memories, largest in rows]


def _days_of_dialects(tx: Tx, count: int, dialects: list[str] | None) -> list[DayOfDialects]:
    days = {name: DayOfDialects(name, 0, {}) for name in _names(tx, count)}
    for day, dialect, memories in _counts(tx, min(days), dialects):
        if memories and day in days:
            days[day].memories += memories
            days[day].dialects[dialect] = memories
    return [*days.values()]


def days_until_now(tx: Tx, count: int, dialects: list[str] | None) -> list[Day]:
    """Return the last days up to now, the oldest first, each with the number of memories last written on it."""
    names, by_name = _names(tx, count), dict[str, Day]()
    if tx.is_limited:
        for day, _, memories in _counts(tx, names[0], dialects):
            by_name.setdefault(day, Day(day, 0)).memories += memories
    else:
        by_name = {day.day: day for day in tx.all("kernel.console.days", Day, since=names[0], dialects=dialects)}
    return [by_name.get(name) or Day(name, 0) for name in names]


def _counts(tx: Tx, since: str, dialects: list[str] | None) -> list[tuple[str, str, int]]:
    """Return the memories of each day and dialect; of a call that is held to places, of the newest in each scope."""
    if tx.is_limited:
        limits = {"since": since, "dialects": dialects, "most": MOST_COUNTED}
        return tx.rows("kernel.console.days_in_reach", **limits)
    return tx.rows("kernel.console.days_of_dialects", since=since, dialects=dialects)


def _names(tx: Tx, count: int) -> list[str]:
    today = datetime.fromisoformat(tx.now).date()
    return [(today - timedelta(days=before)).isoformat() for before in reversed(range(count))]

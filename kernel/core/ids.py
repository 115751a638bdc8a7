"""The clock and the source of identifiers; no other module reads the time or random bits for stored values."""

import itertools
import os
import sys
import time
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import cache

from kernel.core.times import EPOCH, iso

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_NANOSECOND_BITS, _RANDOM_BITS = 20, 40
_counter = itertools.count()
# The id of the call under way, if it has one already: each log line of a call names it.
current_call: ContextVar[str] = ContextVar("current_call", default="")


@cache
def _process() -> str:
    """Return the name of this process: in a container it has the same number after each start."""
    return f"{os.urandom(6).hex()}-{os.getpid():x}"


if sys.platform != "win32":  # which forks no process
    os.register_at_fork(after_in_child=_process.cache_clear)


def utc_now(clock: int | None = None) -> str:
    """Now as ISO 8601 in UTC with milliseconds, for example `2026-11-21T10:00:00.000Z`.

    `clock` is the time of another clock, in nanoseconds since 1970.
    """
    return iso(datetime.now(UTC) if clock is None else EPOCH + timedelta(microseconds=clock // 1000))


def new_id(prefix: str, clock: int | None = None) -> str:
    """Return `prefix_` and 22 characters of base 32: 50 bits of milliseconds, 20 of the nanoseconds since, then 40
    random bits, so ids sort by time, those of one call too.
    """
    milliseconds, nanoseconds = divmod(now_ns() if clock is None else clock, 1_000_000)
    moment = milliseconds << _NANOSECOND_BITS | nanoseconds
    value = moment << _RANDOM_BITS | int.from_bytes(os.urandom(_RANDOM_BITS // 8), "big")
    letters = [_ALPHABET[value >> shift & 31] for shift in range(105, -1, -5)]
    return f"{prefix}_{''.join(letters)}"


def call_id() -> str:
    """Return a short id for one call in the log: takes `current_call` if it is set, else makes a new id."""
    id_ = current_call.get()
    if id_:
        current_call.set("")
        return id_
    return new_call_id()


def shared_call_id() -> str:
    """Return `call_id()`, which later observers of the same call take too."""
    id_ = call_id()
    current_call.set(id_)
    return id_


def new_call_id() -> str:
    """Return an id that no process has used, of this start or another."""
    return f"{_process()}-{next(_counter):x}"


def now_ns() -> int:
    return time.time_ns()

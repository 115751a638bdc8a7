"""Pages of lists: the token of the next one, and bounds of time."""

import base64
import binascii
from typing import TypeVar

import msgspec

from kernel.core.errors import Fault
from kernel.core.times import utc_time

Item = TypeVar("Item")
Mark = TypeVar("Mark", int, str)
_WHOLE = 20  # items of a page with their content


def page_size(limit: int, view: str) -> int:
    """Return how many items a page has."""
    return min(limit, _WHOLE) if view == "full" else limit


def token(mark: int | str) -> str:
    """Return the token of the page that begins at a mark."""
    return base64.urlsafe_b64encode(msgspec.json.encode(mark)).decode().rstrip("=")


def mark_of(page: str | None, first: Mark) -> Mark:
    """Return the mark of a token, or the first one without a token; raises Fault("invalid") for what is no
    such token.
    """
    if page is None:
        return first
    try:
        padded = page.encode() + b"=" * (-len(page) % 4)
        found = msgspec.json.decode(base64.b64decode(padded, b"-_", validate=True), type=type(first))
    except (binascii.Error, UnicodeError, msgspec.MsgspecError):
        found = None
    if found is None or (isinstance(found, int) and found > first):
        raise Fault("invalid", "page: is not the next_page of a page before")
    return found


def bounds(since: str | None, until: str | None) -> dict[str, str | None]:
    """Return the bounds of created_at in the format of the store; raises Fault("invalid") for other texts."""
    return {"since": _time("gte", since), "until": _time("lte", until)}


def _time(name: str, given: str | None) -> str | None:
    if given is None:
        return None
    found = utc_time(given)
    if found is None:
        raise Fault("invalid", f"created_at[{name}]: {given[:64]!r} is not an ISO 8601 time")
    return found

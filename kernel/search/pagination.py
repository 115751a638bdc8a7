"""Cursors of ranked lists: each carries the memories of earlier pages, so that no memory comes twice or is skipped."""

import base64
import hashlib
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from kernel.core.errors import Fault
from kernel.core.times import EPOCH, iso, stored_time

_MILLISECOND = timedelta(milliseconds=1)
MAX_SEEN = 1000  # memories one list can show: keeps a cursor below 6 kB
# A cursor is an eighth of the tokens of ten short hits, so it holds no byte more than it needs.
_DIGEST_BYTES = 4  # for each memory: of ten pages of ten, a memory is taken for another in one of 100,000 lists
_QUERY_DIGEST_BYTES = 3  # tell a client that confuses cursors
_ID_BYTES = 5
_TIME_BYTES = 6  # milliseconds since 1970, to the year 9999 and beyond
_HEADER_BYTES = _QUERY_DIGEST_BYTES + _ID_BYTES + _TIME_BYTES
MAX_CURSOR_LENGTH = -(-(_HEADER_BYTES + MAX_SEEN * _DIGEST_BYTES) // 3) * 4


class SeenPage(NamedTuple):
    """The memories of earlier pages, as digests, and the moment of the first page.

    `last` is the largest document id of that moment, `since` its time (ISO 8601 UTC with milliseconds and Z). Memories
    created later are not part of the list; memories rewritten later still are.
    """

    last: int
    since: str
    digests: frozenset[bytes] = frozenset()

    def contains(self, space: str, key: str) -> bool:
        """Return whether a page has shown this memory."""
        return _digest(f"{space}/{key}", _DIGEST_BYTES) in self.digests

    def existed(self, doc: int, created_at: str) -> bool:
        """Return whether a memory existed when the first page was made."""
        return doc <= self.last or created_at <= self.since


def encode_cursor(page: SeenPage, query: str, keys: Iterable[tuple[str, str]]) -> str | None:
    """Return the cursor after a page with these (space, key) pairs; None past MAX_SEEN memories.

    `query` stands for everything the list depends on; the cursor is valid for the same query only.
    """
    names = [f"{space}/{key}".encode("utf-8", "surrogatepass") for space, key in keys]
    digests = page.digests.union([hashlib.blake2b(name, digest_size=_DIGEST_BYTES).digest() for name in names])
    if len(digests) > MAX_SEEN:
        return None
    header = _digest(query, _QUERY_DIGEST_BYTES) + page.last.to_bytes(_ID_BYTES, "big") + _pack_time(page.since)
    return base64.urlsafe_b64encode(header + b"".join(sorted(digests))).decode().rstrip("=")


def cursor_length(count: int) -> int:
    """Return the length in bytes of a cursor after `count` memories; 0 past MAX_SEEN."""
    return -(-(_HEADER_BYTES + count * _DIGEST_BYTES) * 4 // 3) if count <= MAX_SEEN else 0


def decode_cursor(cursor: str, query: str) -> SeenPage:
    """Return the memories of earlier pages; raises Fault("invalid") for anything but a cursor of this query."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        since = _unpack_time(data[_QUERY_DIGEST_BYTES + _ID_BYTES : _HEADER_BYTES])
    except (ValueError, OverflowError):
        data, since = b"", ""
    digests = data[_HEADER_BYTES:]
    if len(data) < _HEADER_BYTES or len(digests) % _DIGEST_BYTES:
        raise Fault("invalid", "cursor: not one that an answer of recall gave")
    if data[:_QUERY_DIGEST_BYTES] != _digest(query, _QUERY_DIGEST_BYTES):
        raise Fault("invalid", "cursor: of another question; query and filters must stay the same from page to page")
    split = (digests[at : at + _DIGEST_BYTES] for at in range(0, len(digests), _DIGEST_BYTES))
    last = int.from_bytes(data[_QUERY_DIGEST_BYTES : _QUERY_DIGEST_BYTES + _ID_BYTES], "big")
    return SeenPage(last, since, frozenset(split))


def _pack_time(time: str) -> bytes:
    return max(0, (stored_time(time) - EPOCH) // _MILLISECOND).to_bytes(_TIME_BYTES, "big")


def _unpack_time(data: bytes) -> str:
    return iso(EPOCH + int.from_bytes(data, "big") * _MILLISECOND)


def _digest(text: str, length: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=length).digest()

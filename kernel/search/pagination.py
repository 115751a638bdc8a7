"""Cursors: where a list of found memories goes on, so that none comes twice and none is passed over."""

import base64
import hashlib
from collections.abc import Iterable
from typing import NamedTuple

from kernel.errors import Fault

DEEPEST = 1000
_MARK = 5
_NUMBER = 8
_TIME = 24
_HEAD = 4 + _NUMBER + _TIME
LONGEST = -(-(_HEAD + DEEPEST * _MARK) // 3) * 4


class SeenPage(NamedTuple):
    """What earlier pages have shown: a mark of each memory, and the moment of the first page.

    `last` is the largest document number of that moment, `since` its time (ISO 8601 UTC with milliseconds and Z).
    Memories made later are not part of the list; one that is rewritten meanwhile still is.
    """

    last: int
    since: str
    marks: frozenset[bytes] = frozenset()

    def holds(self, space: str, key: str) -> bool:
        """Whether a page has shown this memory."""
        return _mark(space, key) in self.marks

    def begun(self, doc: int, created_at: str) -> bool:
        """Whether a memory was there when the first page was made."""
        return doc <= self.last or created_at <= self.since


def encode_cursor(shown: SeenPage, question: str, keys: Iterable[tuple[str, str]]) -> str | None:
    """The cursor after a page with the memories of these (space, key) pairs; None where the list has become too long.

    `question` is all that the list depends on: a cursor goes with no other.
    """
    marks = shown.marks.union(_mark(space, key) for space, key in keys)
    if len(marks) > DEEPEST:
        return None
    head = _digest(question, 4) + shown.last.to_bytes(_NUMBER, "big") + shown.since.encode()
    return base64.urlsafe_b64encode(head + b"".join(sorted(marks))).decode().rstrip("=")


def size(count: int) -> int:
    """The length in bytes of a cursor after `count` memories."""
    return -(-(_HEAD + count * _MARK) * 4 // 3)


def decode_cursor(cursor: str, question: str) -> SeenPage:
    """What the pages before have shown; raises Fault("invalid") for what is no cursor of this question."""
    try:
        held = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        since = held[4 + _NUMBER : _HEAD].decode("ascii")
    except ValueError:
        held, since = b"", ""
    marks = held[_HEAD:]
    if len(since) != _TIME or len(marks) % _MARK:
        raise Fault("invalid", "cursor: not one that an answer of recall gave")
    if held[:4] != _digest(question, 4):
        raise Fault("invalid", "cursor: of another question; query and filters must stay the same from page to page")
    split = (marks[at : at + _MARK] for at in range(0, len(marks), _MARK))
    return SeenPage(int.from_bytes(held[4 : 4 + _NUMBER], "big"), since, frozenset(split))


def _mark(space: str, key: str) -> bytes:
    return _digest(f"{space}/{key}", _MARK)


def _digest(text: str, length: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=length).digest()

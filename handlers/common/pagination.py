"""A page of what was found, no larger than its token budget, all that stands around the memories counted."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from handlers.common.schemas import Explained, Found, Provenance, Recall, Recalled, Signals
from handlers.common.scoring import Item
from kernel.search.pagination import SeenPage, cursor_length, encode_cursor
from kernel.text import one_line

BYTES_PER_TOKEN = 4
_LINE = 160
_DIGITS = 4
_NUMBERS = 8  # what the two numbers of an answer grow by after it is filled


class Listing(NamedTuple):
    """What a page is of: everything found that is still to be shown, best first, and what went before."""

    items: Sequence[Item]
    signals: list[str]
    question: str
    shown: SeenPage


def page(listing: Listing, request: Recall) -> Recalled:
    """As many of the memories as limit and budget allow; the first is cut where the budget does not hold it.

    Where more follow there is a cursor, unless the budget has no room for it beside one memory.
    """
    items = listing.items[: request.limit]
    answer = Recalled([], listing.signals, 0, 0)
    room = request.max_tokens * BYTES_PER_TOKEN - len(msgspec.json.encode(answer)) - _NUMBERS
    for number, item in enumerate(items, start=1):
        cursor = cursor_length(len(listing.shown.digests) + number) if number < len(listing.items) else 0
        found = _fitted(item, request, room - cursor, first=number == 1) or (
            _cut(item, request, room) if number == 1 else None
        )
        if found is None:
            break
        answer.memories.append(found)
        room -= len(msgspec.json.encode(found)) + 1
    answer.omitted = len(items) - len(answer.memories)
    if answer.memories and len(answer.memories) < len(listing.items):
        keys = [(memory.space, memory.key) for memory in answer.memories]
        cursor = encode_cursor(listing.shown, listing.question, keys)
        answer.cursor = cursor if cursor and len(cursor) <= room else None
    answer.tokens = tokens(answer)
    return answer


def tokens(answer: Recalled) -> int:
    """What an answer costs a model's context, taken as a token for every four bytes of its JSON."""
    answer.tokens = len(msgspec.json.encode(answer)) // BYTES_PER_TOKEN
    return -(-len(msgspec.json.encode(answer)) // BYTES_PER_TOKEN)


def _fitted(item: Item, request: Recall, room: int, *, first: bool) -> Found | None:
    """The memory within so many bytes; only the first of a page is cut for that."""
    text = item.document.text if request.detail == "text" or request.ids else one_line(item.document.text, _LINE)
    found = _found(item, text, request)
    if len(msgspec.json.encode(found)) <= room:
        return found
    return _cut(item, request, room) if first else None


def _found(item: Item, text: str, request: Recall) -> Found:
    document, scored = item.document, item.scored
    hit = scored.hit if scored else None
    signals = Signals(*(_rounded(value) for value in (hit.text_rank, hit.similarity, hit.late))) if hit else _NONE
    origin = Provenance(document.dialect, document.tool, document.actor, document.created_at, document.updated_at)
    return Found(
        f"{document.space}/{document.key}",
        document.space,
        document.key,
        document.scope,
        round(item.score, _DIGITS),
        signals,
        origin,
        text,
        text == document.text,
        document.flag or UNSET,
        _explained(item) if request.explain and hit else UNSET,
    )


_NONE = Signals(None, None, None)


def _explained(item: Item) -> Explained:
    words, meaning, late, neighbours = (round(part, _DIGITS) for part in item.parts)
    return Explained(
        words, meaning, late, neighbours, round(item.recency, _DIGITS), item.alike, round(item.factor, _DIGITS)
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _cut(item: Item, request: Recall, room: int) -> Found | None:
    """The memory with as much of its text as so many bytes hold, or None where they do not even hold its frame."""
    text = item.document.text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if len(msgspec.json.encode(_found(item, text[:middle] + "…", request))) <= room:
            low = middle
        else:
            high = middle - 1
    return _found(item, text[:low] + "…", request) if low else None

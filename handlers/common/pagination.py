"""One page of results within its token budget; the JSON around the memories counts too."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from handlers.common.schemas import Explained, Provenance, Recall, Recalled, RecalledMemory, Signals
from handlers.common.scoring import ScoredDocument
from kernel.search.pagination import SeenPage, cursor_length, encode_cursor
from kernel.text import one_line

BYTES_PER_TOKEN = 4  # a common estimate for English text
_LINE_WIDTH = 160  # characters; about 40 tokens, enough to decide which text to read
_DIGITS = 4  # more would cost tokens and carry no information
_COUNT_GROWTH_BYTES = 8  # growth of `omitted` and `tokens`, which are set after the memories


class RankedResults(NamedTuple):
    """The results that are not shown yet, best first, and the position of earlier pages."""

    items: Sequence[ScoredDocument]
    signals: list[str]
    question: str
    shown: SeenPage


def page(listing: RankedResults, request: Recall) -> Recalled:
    """As many memories as limit and budget allow; the first is cut if the budget is too small for it.

    If more follow there is a cursor, unless the budget has no room for it beside one memory.
    """
    items = listing.items[: request.limit]
    answer = Recalled([], listing.signals, 0, 0)
    room = request.max_tokens * BYTES_PER_TOKEN - len(msgspec.json.encode(answer)) - _COUNT_GROWTH_BYTES
    for number, item in enumerate(items, start=1):
        cursor = cursor_length(len(listing.shown.digests) + number) if number < len(listing.items) else 0
        found = _fit(item, request, room - cursor, first=number == 1) or (
            _cut_to(item, request, room) if number == 1 else None
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
    answer.tokens = count_tokens(answer)
    return answer


def count_tokens(answer: Recalled) -> int:
    """The estimated tokens of an answer; also sets its `tokens`."""
    answer.tokens = len(msgspec.json.encode(answer)) // BYTES_PER_TOKEN
    return -(-len(msgspec.json.encode(answer)) // BYTES_PER_TOKEN)


def _fit(item: ScoredDocument, request: Recall, room: int, *, first: bool) -> RecalledMemory | None:
    """The memory if it fits into `room` bytes; the first of a page is cut to fit."""
    text = item.document.text if request.detail == "text" or request.ids else one_line(item.document.text, _LINE_WIDTH)
    found = _recalled_memory(item, text, request)
    if len(msgspec.json.encode(found)) <= room:
        return found
    return _cut_to(item, request, room) if first else None


def _recalled_memory(item: ScoredDocument, text: str, request: Recall) -> RecalledMemory:
    document, scored = item.document, item.scored
    hit = scored.hit if scored else None
    signals = Signals(*(_round(value) for value in (hit.text_rank, hit.similarity, hit.late))) if hit else _NO_SIGNALS
    origin = Provenance(document.dialect, document.tool, document.actor, document.created_at, document.updated_at)
    return RecalledMemory(
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


_NO_SIGNALS = Signals(None, None, None)


def _explained(item: ScoredDocument) -> Explained:
    words, meaning, late, neighbours = (round(part, _DIGITS) for part in item.parts)
    return Explained(
        words,
        meaning,
        late,
        neighbours,
        round(item.recency, _DIGITS),
        item.alike,
        round(item.factor, _DIGITS),
    )


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _cut_to(item: ScoredDocument, request: Recall, room: int) -> RecalledMemory | None:
    """The memory with as much text as fits into `room` bytes, or None if not even an empty one fits."""
    text = item.document.text
    # Binary search: the JSON size depends on escapes, so it cannot be computed from the length.
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if len(msgspec.json.encode(_recalled_memory(item, text[:middle] + "…", request))) <= room:
            low = middle
        else:
            high = middle - 1
    return _recalled_memory(item, text[:low] + "…", request) if low else None

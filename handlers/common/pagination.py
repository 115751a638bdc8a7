"""One page of results within its token budget; the JSON around the memories counts too."""

import math
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple, replace

from handlers.common.schemas import Explained, Provenance, Recall, Recalled, RecalledMemory, Signals
from handlers.common.scoring import ScoredDocument
from handlers.common.tokens import CURSOR_TOKENS_PER_BYTE, Tokens, tokens_of
from kernel.core.errors import Fault
from kernel.core.text import one_line
from kernel.search import index
from kernel.search.pagination import SeenPage, cursor_length, encode_cursor

_LINE_WIDTH = 240  # characters; about 55 tokens, which is all of most memories
_LEAST_CUT = 12  # characters of a text that is cut; its origin is left out before it gets shorter
_BARE = Recall(query="-")
_AGE = tokens_of(b",1000")  # an entry of `days_old`
_LINE_DIGITS = 2
_DIGITS = 4  # more would cost tokens and carry no information
_LATER_TOKENS = 4  # of `omitted` and `tokens`, which are set after the memories
_DATE = len("2026-01-01")
_MOST_CHARACTERS_PER_TOKEN = 12  # of a text
_APART = b"\x80"  # between texts that are counted as if each were alone: of no class of characters
_MOST_STALE = index.least("strong") - 0.01  # the strength of a memory that names a changed place
_encode = msgspec.json.Encoder().encode


class RankedResults(NamedTuple):
    """The results that are not shown yet, best first, and the position of earlier pages."""

    items: Sequence[ScoredDocument]
    signals: list[str]
    question: str
    shown: SeenPage
    unrecorded: int | UnsetType = UNSET
    below: int = 0  # candidates that do not reach the floor
    expired: int = 0  # memories past their validity that are left out
    now: str = ""  # the time of the question, or the time that it asks about


def page(listing: RankedResults, request: Recall) -> Recalled:
    """Return as many memories as limit and budget allow, and a cursor if more follow, up to the most a cursor can hold.

    The first memory is cut if the budget is too small for it; raises Fault("invalid") if there is no room for it
    beside the cursor.
    """
    items = listing.items[: request.limit]
    answer = Recalled([], listing.signals, 0, 0, unrecorded=listing.unrecorded)
    nothing = _nothing(listing.below) if not items and request.query.strip() and not request.cursor else ""
    answer.message = " ".join(filter(None, (nothing, _left_out(listing.expired)))) or UNSET
    likely = _fill_whole(answer, listing, request)
    if not likely:
        likely = _fill(answer, listing, request)
        answer.days_old = _days_old(listing, request, len(answer.memories))
    answer.omitted = len(items) - len(answer.memories)
    if answer.memories and len(answer.memories) < len(listing.items):
        keys = [(item.document.space, item.document.key) for item in items[: len(answer.memories)]]
        answer.cursor = encode_cursor(listing.shown, listing.question, keys)
        likely += _cursor_tokens(listing.shown, len(keys))
    answer.tokens = math.ceil(likely)
    return answer


def _fill_whole(answer: Recalled, listing: RankedResults, request: Recall) -> float:
    """Adds the memories if all fit, counted at once; the tokens of the answer, else 0."""
    items, is_whole, is_detailed = listing.items[: request.limit], _is_whole_text(request), _is_detailed(request)
    texts = [item.document.text if is_whole else one_line(item.document.text, _LINE_WIDTH) for item in items]
    if not texts or sum(map(len, texts)) > _MOST_CHARACTERS_PER_TOKEN * request.max_tokens:
        return 0.0
    memories = [_recalled_memory(*pair, request, is_detailed) for pair in zip(items, texts, strict=True)]
    if is_whole:
        token_range = tokens_of(_APART.join(map(_encode, (answer, *memories))))
    else:
        answer.days_old = _days_old(listing, request, len(memories))
        token_range = tokens_of(_encode((answer, memories)))
    cursor = _cursor_tokens(listing.shown, len(memories)) if len(memories) < len(listing.items) else 0.0
    if token_range.most + cursor > request.max_tokens - _LATER_TOKENS:
        return 0.0
    answer.memories = memories
    return token_range.likely


def _fill(answer: Recalled, listing: RankedResults, request: Recall) -> float:
    """Adds the memories that fit, in order. Return the tokens of the answer."""
    has_ages = listing.items and not _is_whole_text(request)
    answer.days_old, age = ([], _AGE) if has_ages else (UNSET, Tokens(0.0, 0.0))
    token_range = tokens_of(_encode(answer))
    room, likely = request.max_tokens - token_range.most - _LATER_TOKENS, token_range.likely
    for number, item in enumerate(listing.items[: request.limit], start=1):
        cursor = _cursor_tokens(listing.shown, number) if number < len(listing.items) else 0.0
        memory, token_range = _fit(item, request, room - cursor - age.most, first=number == 1)
        if memory is None and number == 1:
            raise _too_few(item, request, room - cursor - age.most)
        if memory is None:
            break
        answer.memories.append(memory)
        room, likely = room - token_range.most - age.most, likely + token_range.likely + age.likely
    return likely


def _cursor_tokens(seen_page: SeenPage, count: int) -> float:
    return cursor_length(len(seen_page.digests) + count) * CURSOR_TOKENS_PER_BYTE


def _nothing(below: int) -> str:
    nearest = " The nearest are far from it; floor=none shows them." if below else ""
    return f"Nothing stored answers this query.{nearest}"


def _left_out(expired: int) -> str:
    memories = "1 expired memory is" if expired == 1 else f"{expired} expired memories are"
    return f"{memories} left out; expired=true shows {'it' if expired == 1 else 'them'}." if expired else ""


def _too_few(item: ScoredDocument, request: Recall, room: float) -> Fault:
    missing = tokens_of(_encode(_least(item, _BARE))).most - room
    least = request.max_tokens + max(1, math.ceil(missing))
    return Fault("invalid", f"max_tokens: {request.max_tokens} are too few for one memory, give at least {least}")


def _fit(item: ScoredDocument, request: Recall, room: float, *, first: bool) -> tuple[RecalledMemory | None, Tokens]:
    """Return the memory if it takes at most `room` tokens, and its tokens; the first of a page is cut to fit."""
    text = item.document.text if _is_whole_text(request) else one_line(item.document.text, _LINE_WIDTH)
    memory = _recalled_memory(item, text, request, _is_detailed(request))
    token_range = tokens_of(_encode(memory))
    if token_range.most <= room or not first:
        return (memory, token_range) if token_range.most <= room else (None, token_range)
    cut = _cut_to(item, request, room)
    return cut, tokens_of(_encode(cut)) if cut else token_range


def _days_old(listing: RankedResults, request: Recall, count: int) -> int | list[int] | UnsetType:
    """Return the days since the last change of each of the first hits, one number if they share it; none where the
    answer has the times themselves.

    A date for each hit would cost a fifth more tokens, these numbers a twentieth.
    """
    if _is_whole_text(request) or not count:
        return UNSET
    today = date.fromisoformat(listing.now[:_DATE])
    dates = [item.document.updated_at[:_DATE] for item in listing.items[:count]]
    ages = {day: (today - date.fromisoformat(day)).days for day in {*dates}}
    return [ages[day] for day in dates] if len(ages) > 1 else ages[dates[0]]


def _is_whole_text(request: Recall) -> bool:
    return request.detail == "text" or bool(request.ids)


def _is_detailed(request: Recall) -> bool:
    return _is_whole_text(request) or request.explain


def _recalled_memory(item: ScoredDocument, text: str, request: Recall, is_detailed: bool) -> RecalledMemory:
    document = item.document
    score = round(item.score, _DIGITS if is_detailed else _LINE_DIGITS)
    whole = document.text
    is_whole = (
        text == whole
        or (  # in other blanks
            len(whole) <= 4 * _LINE_WIDTH and whole.rstrip().endswith(text[-1:]) and text == " ".join(whole.split())
        )
    )
    memory = RecalledMemory(f"{document.space}/{document.key}", score, text, is_whole)
    if item.scored is not None:
        strength = min(item.scored.strength, _MOST_STALE) if item.document.stale else item.scored.strength
        memory.strength = round(strength, _LINE_DIGITS)
        memory.verdict = index.verdict(strength) if is_detailed else UNSET
    if is_detailed:
        memory.scope = document.scope
    if is_detailed or document.flag:
        born = UNSET if document.created_at == document.updated_at else document.created_at
        memory.provenance = Provenance(document.dialect, document.tool, document.actor, born, document.updated_at)
    memory.flag = document.flag or UNSET
    memory.older_version_of = item.newer or UNSET
    memory.stale = item.document.stale or UNSET
    memory.expired = item.expired
    if is_detailed and item.beside:
        memory.beside = {**item.beside}
    if request.explain:
        memory.signals = _signals(item)
        memory.explained = _explained(item) if item.scored else UNSET
    return memory


def _signals(item: ScoredDocument) -> Signals:
    if item.scored is None:
        return Signals(None, None, None)
    hit = item.scored.hit
    return Signals(_round(hit.text_rank), _round(hit.similarity), _round(hit.late))


def _explained(item: ScoredDocument) -> Explained:
    words, meaning, late, neighbours = [round(part, _DIGITS) for part in astuple(item.parts)]
    return Explained(
        words, meaning, late, neighbours, round(item.recency, _DIGITS), item.alike, round(item.factor, _DIGITS)
    )


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _least(item: ScoredDocument, request: Recall) -> RecalledMemory:
    return _recalled_memory(item, item.document.text[:_LEAST_CUT] + "…", request, _is_detailed(request))


def _cut_to(item: ScoredDocument, request: Recall, room: float) -> RecalledMemory | None:
    """Return the memory with as much text as `room` tokens hold; without its origin if there is no room for that,
    and None if there is none for its id and the least text.
    """

    def fits(memory: RecalledMemory) -> bool:
        return tokens_of(_encode(memory)).most <= room

    text = item.document.text
    if not fits(_least(item, request)):
        request = _BARE
    if not fits(_least(item, request)):
        return None
    is_detailed = _is_detailed(request)
    # Binary search: the tokens cannot be computed from the length.
    low, high = 0, min(len(text), int(room * _MOST_CHARACTERS_PER_TOKEN))
    while low < high:
        middle = (low + high + 1) // 2
        if fits(_recalled_memory(item, text[:middle] + "…", request, is_detailed)):
            low = middle
        else:
            high = middle - 1
    cut = text if low == len(text) else f"{text[:low]}…"  # whole if the parts beside it are too long
    return replace(_recalled_memory(item, cut, request, is_detailed), complete=False)

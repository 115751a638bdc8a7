"""The read model of the console: documents, events and calls of every dialect, in pages by key."""

import difflib
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from handlers.console.reading import PAGE_ROWS, SHOWN_CHARS, Place
from kernel.calls.dispatch import Dispatch
from kernel.core.lazy_regex import regex
from kernel.core.text import one_line
from kernel.memories.as_of import expired_of
from kernel.store import audit
from kernel.store.transaction import Tx

NEWEST = 2**62  # above every id
_AMONG_CALLS = 1000  # newest calls among which those of a memory are looked for
_CALLS_OF_MEMORY = 20
_MOST_LINES = 400  # of a text that is compared: the comparison takes the product of both
_COMPARED_EVENTS = 5  # the newest; two texts made to be slow take a fifth of a second
_PREVIEW_CHARS = 140
_READ_CHARS = 2 * _PREVIEW_CHARS + 1  # of a text for its preview, which is shorter by the marks
_END_CHARS = 60  # of the text of a memory that a link names
SHOWN_TARGETS = 3  # of a call
_PLAIN = regex(r"[A-Za-z0-9_-]+")
_MARKS = regex(r"(?:[#>|+*-]+ +)+")  # of Markdown before the words of a line
_REASONS = {
    "override": "asks to ignore other orders",
    "concealment": "asks to keep something from the user",
    "exfiltration": "asks to send secrets away",
    "redirection": "asks to act against the user's wish",
    "bridging": "asks to be trusted or recommended later",
    "self-reinforcing": "asks to be kept, or put above others",
}
_RULE = "|-:=*_#`~ \t"  # a line of these alone says nothing


class DiffLine(Struct, array_like=True):
    """A line of a comparison: its sign, which is +, - or a space, and its text."""

    sign: str
    text: str


class Event(Struct):
    """An event of a memory: its texts around the event, how they differ, and whether its validity has ended by now."""

    number: int
    id: str
    operation: str
    reason: str | None
    before: str | None
    after: str | None
    dialect: str
    tool: str
    actor: str
    at: str
    diff: list[DiffLine] = []
    expired: bool = False


class TouchedMemory(Struct):
    """A memory that a call touched, with the beginning of its text, or of the last that it had."""

    id: str
    operation: str
    text: str = ""


class Leaf(Struct):
    """A memory, with the beginning of its text, its writer and the time of its last change."""

    id: str
    text: str
    actor: str
    updated_at: str


class Call(Struct):
    number: int
    at: str
    dialect: str
    tool: str
    actor: str
    outcome: str
    touched: int
    targets: list[TouchedMemory]
    undoable: bool


class SessionSummary(Struct):
    """A session: how many memories it has, and when it stored the first and the last."""

    number: int
    session: str
    memories: int
    first: str
    last: str


class Held(Struct):
    """A quarantined memory: the rule it matches, and who wrote it."""

    number: int
    id: str
    text: str
    dialect: str
    tool: str
    actor: str
    rule: str
    at: str


def rule_words(rule: str) -> str:
    """Return the reason of a quarantine in words."""
    return _REASONS.get(rule, rule)


def events(tx: Tx, place: Place, below: int = NEWEST) -> list[Event]:
    """Return the events of one memory, newest first, each with its comparison."""
    where = {"space": place.space, "key": place.key}
    past = tx.all("kernel.console.versions", _event, **where, below=below, limit=PAGE_ROWS + 1, chars=SHOWN_CHARS)
    for event in past[:_COMPARED_EVENTS]:
        tx.check_time()
        event.diff = compare(event.before, event.after)
    return past


def timeline(tx: Tx, dispatch: Dispatch, below: int, **filters: Any) -> list[Event]:
    """Return the events of all memories, newest first, with the beginnings of their texts."""
    where = {"below": below, "limit": PAGE_ROWS + 1, "chars": _READ_CHARS}
    rows = tx.all("kernel.console.timeline", _event, **where, **filters)
    _mark_ends(tx, rows)
    texts = [(Place(*row.id.partition("/")[::2]), row.after or row.before or "") for row in rows]
    for row, text in zip(rows, with_ends(tx, dispatch, texts), strict=True):
        if row.after:
            row.after = text
        elif row.before:
            row.before = text
    return rows


def _mark_ends(tx: Tx, rows: Sequence[Event]) -> None:
    places = {row.id: Place(*row.id.partition("/")[::2]) for row in rows}
    ended = expired_of(tx, [(place.space, place.key) for place in places.values()], tx.now)
    for row in rows:
        row.expired = (places[row.id].space, places[row.id].key) in ended


def session_events(tx: Tx, below: int, space: str, session: str, **filters: Any) -> list[Event]:
    """Return the events of the memories that a session has, newest first, with the beginnings of their texts."""
    where = {"space": space, "session": session, "below": below, "limit": PAGE_ROWS + 1, "chars": _READ_CHARS}
    return tx.all("kernel.console.session_events", _event, **where, **filters)


def sessions(tx: Tx, below: int, space: str) -> list[SessionSummary]:
    """Return the sessions that have memories, that with the newest one first."""
    return tx.all("kernel.console.sessions", SessionSummary, space=space, below=below, limit=PAGE_ROWS + 1)


def calls(tx: Tx, below: int, limit: int, *, dialects: Sequence[str] | None, actor: str | None = None) -> list[Call]:
    """Return the calls that changed something, newest first."""
    return tx.all("kernel.console.calls", _call, below=below, limit=limit, dialects=dialects, actor=actor)


def newest_call(tx: Tx) -> int:
    """Return the number of the last call that changed something; 0 for none."""
    return next((call.number for call in calls(tx, NEWEST, 1, dialects=None)), 0)


def calls_of(tx: Tx, place: Place) -> list[Call]:
    """Return of the newest calls those that touched one memory, newest first."""
    part = max(_PLAIN.findall(place.key), key=len, default="")
    where = {"space": place.space, "key": place.key, "part": part}
    return tx.all("kernel.console.calls_of", _call, **where, among=_AMONG_CALLS, limit=_CALLS_OF_MEMORY)


def with_texts(tx: Tx, dispatch: Dispatch, rows: list[Call], dialects: Sequence[str] | None) -> list[Call]:
    """Return the calls with the texts of the first memories that each touched, of those the caller may see."""
    targets = [target for call in rows for target in call.targets[:SHOWN_TARGETS]]
    places = [Place(*target.id.partition("/")[::2]) for target in targets]
    visible_places = {place for place in places if dialects is None or place.dialect in dialects}
    texts = texts_of(tx, [*visible_places])
    texts = dict(zip(texts, with_ends(tx, dispatch, [*texts.items()]), strict=True))
    for target, place in zip(targets, places, strict=True):
        target.text = texts.get(place, "")
    return rows


def texts_of(tx: Tx, places: Sequence[Place]) -> dict[Place, str]:
    """Return the beginnings of the texts of memories, each in a line."""
    return dict(tx.all("kernel.console.previews", _preview, places=places, chars=_READ_CHARS))


def leaves_of(tx: Tx, places: Sequence[Place]) -> list[Leaf]:
    return tx.all("kernel.console.leaves", _leaf, places=places, chars=_READ_CHARS)


def _leaf(space: str, key: str, text: str, actor: str, updated_at: str) -> Leaf:
    place, line = _preview(space, key, text)
    return Leaf(place.id, line, actor, updated_at)


def _preview(space: str, key: str, text: str) -> tuple[Place, str]:
    place = Place(space, key)
    return place, preview(without_key(text, place.id))


def without_key(text: str, memory_id: str) -> str:
    """Return a text without the key that some dialects begin it with, since its id is shown beside it."""
    return text.removeprefix(f"{memory_id.partition('/')[2]}\n")


def preview(text: str) -> str:
    """Return the beginning of a text in one line, without the marks of Markdown."""
    line = ""
    for words, is_plain in _lines(_cut(text, _READ_CHARS - 1)):
        goes_on = is_plain and (line[-1:] in ".,;:!?" or words[0].islower())
        line += f"{' ' if goes_on else ' · '}{words}" if line else words
    return one_line(line, _PREVIEW_CHARS).replace(" ·…", "…")


def plain(text: str, limit: int) -> str:
    """Return the beginning of a text in its lines, without the marks of Markdown and without empty lines."""
    return "\n".join(words for words, _ in _lines(_cut(text, limit)))


def _cut(text: str, limit: int) -> str:
    """Return a text, or the words that begin it and an ellipsis."""
    return text if len(text) <= limit else f"{text[:limit].rpartition(' ')[0] or text[:limit]}…"


def _lines(text: str) -> list[tuple[str, bool]]:
    """Return the lines that say something, each without its marks, and whether it had none."""
    lines = list[tuple[str, bool]]()
    for line in map(str.strip, text.splitlines()):
        if line.strip(_RULE):
            marks = _MARKS.match(line)
            words = line[marks.end() if marks else 0 :].rstrip(" |").replace("**", "").replace("`", "")
            lines.append((words, words == line))
    return lines


def with_ends(tx: Tx, dispatch: Dispatch, texts: Sequence[tuple[Place, str]]) -> list[str]:
    """Return the texts, those of links with the texts of the memories that they name."""
    naming = {dialect.name: dialect.memories.named for dialect in dispatch.dialects if dialect.memories.named}
    named = [
        [Place(place.space, key) for key in naming[place.dialect](place.key, text)] if place.dialect in naming else []
        for place, text in texts
    ]
    ends = {end for several in named for end in several}
    words = texts_of(tx, [*ends]) if ends else {}
    shown = [text for _, text in texts]
    for number, several in enumerate(named):
        for end in several:
            if words.get(end):
                shown[number] = shown[number].replace(end.key, f"“{one_line(words[end], _END_CHARS)}”")
    return shown


def held(tx: Tx, below: int, dialects: Sequence[str] | None) -> list[Held]:
    """Return the quarantined memories, the newest document first."""
    many = {"limit": PAGE_ROWS + 1, "chars": SHOWN_CHARS}
    return tx.all("kernel.console.flagged", _held, below=below, dialects=dialects, **many)


def compare(before: str | None, after: str | None) -> list[DiffLine]:
    """Return the lines of two texts, with signs; empty for a single text, or if they are too long to compare."""
    if before is None or after is None:
        return []
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _MOST_LINES or max(len(before), len(after)) >= SHOWN_CHARS:
        return []
    lines: list[DiffLine] = []
    for kind, low, high, from_, to in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            lines += [DiffLine(" ", line) for line in old[low:high]]
        else:
            lines += [DiffLine("-", line) for line in old[low:high]]
            lines += [DiffLine("+", line) for line in new[from_:to]]
    return lines


def _event(
    number: int, space: str, key: str, operation: str, before: str | None, after: str | None, *rest: Any
) -> Event:
    reason, *origin = rest
    return Event(number, f"{space}/{key}", operation, reason, before, after, *origin)


def _call(*values: Any) -> Call:
    entry = audit.Entry(*values)
    targets = [TouchedMemory(f"{space}/{key}", operation) for space, key, operation in audit.targets(entry)]
    about = (entry.dialect, entry.tool, entry.actor, entry.outcome)
    return Call(entry.id, entry.at, *about, entry.touched, targets, bool(entry.undoable))


def _held(number: int, space: str, key: str, text: str, *origin: Any) -> Held:
    return Held(number, f"{space}/{key}", text, *origin)


def next_page(rows: Sequence[Event | Call | Held | SessionSummary]) -> int | None:
    """Return the number below which the next page begins, if more rows than one page were read."""
    return rows[PAGE_ROWS - 1].number if len(rows) > PAGE_ROWS else None

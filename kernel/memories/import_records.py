"""The types of the imports and exports that a dialect declares."""

import base64
import hashlib
import secrets
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct

from kernel.core.errors import Fault
from kernel.core.text import harmless, one_line
from kernel.store import history
from kernel.store.long_work import Steps
from kernel.store.transaction import Tx

_NONE: Mapping[str, Any] = MappingProxyType({})
_SHOWN_NAME = 120  # characters of a name in a sentence
_SHOWN_NAMES = 20  # in a remark
NOTHING = " Nothing was imported."
REDACTED, SECRET = "[redacted]", "a password or key"
PRIVATE, _CLOSE = "<private>", "</private>"
_LEAST_SLOTS = 1024  # of hashes; doubled when half of them are taken
_SALT = secrets.randbits(60)
_ID_BYTES = 13  # of a digest: 21 characters in base 32, as in the ids of the originals


class Record(NamedTuple):
    """One memory of another program, for the dialect that has its shape.

    `key` is stable: it names the record in the program it comes from, and a record whose key is there is not added
    again. `place` is a database, a session or a project. Times are those of the source, empty if it has none.
    `origin` becomes the `from` of the metadata; `details` has the fields of this kind of record only. `snapshot` is the
    export that holds it.
    """

    dialect: str
    kind: str
    key: str
    text: str
    place: str = ""
    title: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    created_at: str = ""
    updated_at: str = ""
    origin: Mapping[str, Any] = _NONE
    details: Mapping[str, Any] = _NONE
    snapshot: "Snapshot | None" = None


class LeftOut(NamedTuple):
    """A part of a source that becomes no memory: why, its name, and whether it is damaged, which --strict refuses."""

    reason: str
    name: str = ""
    is_damage: bool = False


class Remarks:
    """The parts of a source that are left out or mentioned, counted by reason, with some of their names."""

    def __init__(self, parts: Iterable[LeftOut] = ()) -> None:
        self._counts = Counter[tuple[str, str]]()
        self._names: dict[tuple[str, str], Counter[str]] = {}
        self._faults = list[str]()
        self.damaged = self.left_out = 0
        for part in parts:
            self.add(part)

    def add(self, part: LeftOut, verb: str = "left out") -> None:
        """Count a part that is left out, or mentioned with another verb."""
        self._counts[verb, part.reason] += 1
        self.left_out += verb == "left out"
        self.damaged += part.is_damage
        names, name = self._names.setdefault((verb, part.reason), Counter()), shown(part.name)
        if name and (name in names or len(names) < _SHOWN_NAMES):
            names[name] += 1
        if part.is_damage and len(self._faults) < _SHOWN_NAMES:
            self._faults.append(": ".join(filter(None, (name, part.reason))))

    def count_of(self, verb: str) -> int:
        return sum(count for (own_verb, _), count in self._counts.items() if own_verb == verb)

    def check(self, source: "Source", kept: int) -> None:
        """Raises Fault with the damage of a source, if nothing else is in it, or if none is allowed."""
        name = source.path.name or str(source.path)
        if not kept:
            faults = ": ".join(filter(None, ["holds nothing that can be imported", self._told_faults()]))
            raise Fault("invalid", f"{shown(name)} {faults}.")
        if source.strict and self.damaged:
            raise Fault("invalid", f"{shown(name)}: {self._told_faults()}.{NOTHING}")

    def _told_faults(self) -> str:
        return "; ".join([*self._faults, *([f"{self.damaged:,} in all"] if self.damaged > len(self._faults) else [])])

    def lines(self) -> list[str]:
        """Return a line for each reason, the most frequent first."""
        return [
            f"{verb}: {count} {': '.join(filter(None, (self._told_names(verb, reason), reason)))}"
            for (verb, reason), count in self._counts.most_common()
        ]

    def _told_names(self, verb: str, reason: str) -> str:
        names = self._names[verb, reason]
        more = self._counts[verb, reason] - names.total()
        return ", ".join([*names, *([f"{more} more"] if names and more else [])])


def without_private(text: str) -> str:
    """Return the text without passages between <private> and </private>; without an end, they go on to the end."""
    if PRIVATE not in text:
        return text
    parts: list[str] = []
    at = 0
    while (start := text.find(PRIVATE, at)) >= 0:
        parts.append(text[at:start])
        end = text.find(_CLOSE, start)
        at = len(text) if end < 0 else end + len(_CLOSE)
    return "".join((*parts, text[at:]))


def shown(name: str) -> str:
    """Return a name for a message, on one line, with marks for what a terminal would obey."""
    return one_line(harmless(name), _SHOWN_NAME)


UPDATED, KEPT = "updated", "changed in the source, and edited here since"
DELETED, STAYS = "deleted here", "an import does not bring it back"
PARTS, GONE = "parts", "gone"
"""The kind of a record with the keys of all parts of a file: memories of other parts of it are archived. And that of a
record that its source has no more: it is deleted there, or `details` has the `id` of the memory here.
"""
IMPORT, UNDO = "import ", "undo"  # the calls of imports begin with the first
Take = Callable[[Tx, Sequence[Record]], Sequence[int | str]]
"""Adds the records that are not there yet, and returns of each whether it is new; a read adds nothing.

A record that has changed in its source is UPDATED, or KEPT as it is here if somebody has edited it; one that somebody
has deleted here stays DELETED. Of PARTS and
GONE it returns how many others are archived.
"""


class Digests:
    """A set of hashes, in less memory than a set of numbers takes: an import holds one for each record."""

    def __init__(self) -> None:
        self._slots, self._count = array("q", bytes(8 * _LEAST_SLOTS)), 0

    def __contains__(self, digest: int) -> bool:
        return self._slots[self._slot(digest)] != 0

    def add(self, *digests: int) -> None:
        for digest in digests:
            slot = self._slot(digest)
            self._count += not self._slots[slot]
            self._slots[slot] = digest or 1
            if self._count * 2 > len(self._slots):
                self._grow()

    def _slot(self, digest: int) -> int:
        """Return the slot of a hash, else the free slot for it; no source can choose hashes that crowd together."""
        slots, last = self._slots, len(self._slots) - 1
        slot = hash((digest or 1, _SALT)) & last
        while slots[slot] not in (0, digest or 1):
            slot = (slot + 1) & last
        return slot

    def _grow(self) -> None:
        full, self._slots = self._slots, array("q", bytes(16 * len(self._slots)))
        for digest in filter(None, full):
            self._slots[self._slot(digest)] = digest


class Snapshot(NamedTuple):
    """An export, which holds all that its program has: its path, the place chosen for its records, and the marks of the
    records so far, which the dialects add that take them. It `is_shared` if any of them was here before. A folder of
    files `is_apart`: it holds none of what another of its program does.
    """

    path: str
    into: str
    seen: Digests
    is_shared: bool = False
    is_apart: bool = False


class Absent(NamedTuple):
    """A memory that an earlier export brought and this one does not hold; `is_own` if that had the same path. It
    `is_certain` that this one is of the same origin, if it holds the memory elsewhere, or others of its session.
    """

    id: str
    title: str
    is_own: bool
    is_certain: bool = False


FindAbsent = Callable[[Tx, Snapshot, str], Sequence[Absent]]
"""Returns the memories in force of a program, by its name, that are not in an export; none if none of them is."""


def source_of(record: Record) -> str | None:
    """Return the path of the export that a record comes from, as the reason of its events in the history."""
    return f"from {record.snapshot.path}" if record.snapshot else None


def absent_of(
    tx: Tx, space: str, snapshot: Snapshot, rows: Iterable[tuple[str, str, bool]], *, is_other: bool = True
) -> list[Absent]:
    """Return those of the (key, title, seen) that are not seen; of other exports too, if this one shares some."""
    others = [(key, shown(title)) for key, title, is_seen in rows if not is_seen]
    own = history.of_reason(tx, space, [key for key, _ in others], f"from {snapshot.path}")
    is_told = snapshot.is_shared and is_other and not snapshot.is_apart
    return [Absent(key, title, key in own) for key, title in others if is_told or key in own]


def outcome_of_change(tx: Tx, space: str, key: str, text: str, *, is_other: bool = False) -> bool | str:
    """Return UPDATED for a memory whose last change was an import or its undo, KEPT for what somebody has edited here,
    and False for that if the source is as it was imported.

    If it `is_other` here beside the text, the source has changed that, unless an edit here left the text as it was.
    """
    events = history.read(tx, space, key)
    imports = [event for event in events if event.tool.startswith(IMPORT)]
    is_undone = bool(events) and events[-1].tool == UNDO and events[-1].after in {event.after for event in imports}
    if events[-1:] == imports[-1:] or is_undone:
        return UPDATED
    edits = events[events.index(imports[-1]) + 1 :] if imports else []
    is_changed = is_other and all(event.before != event.after for event in edits)
    return False if imports and imports[-1].after == text and not is_changed else KEPT


class Ahead(Struct):
    """The work of an import before a slice, without a transaction: it reads the next records, and returns their texts.

    The import sets it if it can; texts embedded by then are not embedded while others wait.
    """

    prepare: Callable[[], Sequence[str]] | None = None


class Source(NamedTuple):
    """The source of an import: a file or folder, its password, the settings of the dialects, and a folder for copies.

    `take` is how each dialect takes records, by its name. Records get the place `into`, if there is one. Damaged parts
    are left out; a `strict` import is refused for them. `root` is the folder that an archive stands for, and `packed`
    the archive that was unpacked to `path`, without the members that are `left_out`.
    """

    path: Path
    password: str | None
    settings: Mapping[str, Any]
    copies: Path
    take: Mapping[str, Take] = _NONE
    find_absent: Mapping[str, FindAbsent] = _NONE
    ahead: Ahead = Ahead()
    into: str = ""
    strict: bool = False
    root: str = ""
    packed: Path | None = None
    left_out: Sequence[LeftOut] = ()


class Imported(NamedTuple):
    """The result of an import: rows by kind, and remarks for the user, one line each."""

    counts: Mapping[str, int]
    remarks: Sequence[str] = ()


class Import(NamedTuple):
    """`quipu import KIND PATH`: imports the data of the program that a dialect reproduces.

    `steps(source)` checks the source before its first step and leaves a sound store after each. It may be cut off after
    any of them: another import of the same source goes on, and adds nothing twice. `preview(tx, source)` is its outcome
    in advance; without a preview, the import is tried on a copy. `matches(path)` is whether a file or folder looks like
    this kind, and `dialect` the dialect that the audit names, for an import that no dialect declares. `trial(source)`
    is tried on a copy after `preview`, for refusals that only a write finds.
    """

    kind: str
    about: str
    steps: Callable[[Source], Steps[Imported]]
    preview: Callable[[Tx, Source], Imported] | None = None
    matches: Callable[[Path], bool] | None = None
    dialect: str = ""
    trial: Callable[[Source], Steps[Imported]] | None = None


class Export(NamedTuple):
    """`quipu export KIND FILE`: the data of a dialect in the file of the program that it reproduces, line by line."""

    kind: str
    about: str
    lines: Callable[[Tx], Iterator[bytes]]


def stable_id(prefix: str, *parts: str) -> str:
    """Return an id that depends on nothing but these texts, in the form of the other ids of its kind."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()[:_ID_BYTES]
    return f"{prefix}_{base64.b32encode(digest).decode().lower().rstrip('=')}"

"""Short statements of a space by hashes of their subjects, in memory, so that a write may name what it seems to
contradict without a search.

A slot keeps the key of the last statement that has its hash. The table is a hint: its keys may be gone, or have another
text by now, so the caller reads them again. It follows the documents that other processes put, once a second.
"""

from collections.abc import Set
from itertools import combinations
from typing import NamedTuple

from kernel.core.lazy_regex import regex
from kernel.search.equivalence import are_about_others, are_denying, begins_alike, ends_alike, is_negated
from kernel.search.query import STOP_WORDS
from kernel.store.transaction import Tx

_SLOTS = 1 << 17  # ten thousand statements note eight each
_MASK = _SLOTS - 1
_MOST_READ = 10_000  # documents at once, the last
_MOST_CHARS, _LEAST_WORDS, _MOST_WORDS = 160, 3, 16
_MOST_OF_CHANGE = 240  # characters, with a label
_MOST_CONTENT = 5  # words of which pairs are looked up
_MOST_HALF = 7  # words of a beginning that is looked up
_BY_FORM = 6  # slots of a statement by its form
_FIRST_OF_CJK = "\u2e80"
_LEAST_CJK = 2  # characters of a subject
_SECOND = len("2026-01-01T00:00:00")
_WORD = regex(r"[^\W_]+")
# Words before a value that holds no longer: anywhere, as in "no longer ... X", or just before it, as in "from X".
_LEFT = frozenset(
    "from longer anymore never instead von vom statt nicht mehr kein keine pas plus desde dejó più больше".split()
)
_LEFT_NEXT = frozenset("of off than not de du des del da dal non из с со не".split())
_NEXT = 2


class _Statement(NamedTuple):
    words: list[str]
    content: list[str]
    frame: list[str]  # the words without numbers and names


class _Put(NamedTuple):
    id: int
    key: str
    text: str


class Subjects:
    """The keys of the last short statements of a space, by hashes of their subjects."""

    def __init__(self) -> None:
        self._slots: dict[int, str] = {}  # as many as the statements need: a server may hold a thousand stores
        self._last = self._own = 0  # the last document, and how many were put here since
        self._read_at = ""

    def near(self, text: str, key: str, *, is_new: bool = True, marks: Set[str] = frozenset()) -> list[str]:
        """Return the keys of statements that may be about the same as the text of `key`, which is noted; if it denies
        something or has one of the `marks` of a change, of those in other words too.

        The document of `key` has an id of its own if it `is_new`; that of a replaced text has the id before.
        """
        self._own += is_new
        slots, statement = self._slots, _statement(text)
        if not (own_slots := _noted(text, statement)):
            return []
        wanted_slots = own_slots
        if statement is not None:
            words, content, _ = statement
            wanted_slots = own_slots[:_BY_FORM]
            wanted_slots += [
                hash(tuple(words[:count])) & _MASK for count in range(_LEAST_WORDS + 1, min(len(words), _MOST_HALF + 1))
            ]
            if not marks.isdisjoint(words) or are_denying(words, text.lower()):
                wanted_slots += own_slots[_BY_FORM:]
                wanted_slots += [hash(pair) & _MASK for pair in combinations(content[:_MOST_CONTENT], 2)]
        near = {*map(slots.get, wanted_slots)}
        for subject in own_slots:
            slots[subject] = key
        return sorted(near_key for near_key in near if near_key and near_key != key)

    def follow(self, tx: Tx, space: str) -> None:
        """Notes the documents put elsewhere since the last look, those without a scope, once a second."""
        if (second := tx.now[:_SECOND]) == self._read_at:
            return
        self._read_at = second
        with tx.held_to(None):
            last = tx.context.search_cache.last_ids(tx).doc
            after, other_count = max(self._last, last - _MOST_READ), last - self._last - self._own
            rows = tx.all("kernel.documents.short_since", _Put, doc=after, space=space) if other_count > 0 else []
        for row in rows:
            text = row.text.partition("\n")[2]
            for subject in _noted(text, _statement(text)):
                self._slots[subject] = row.key
        self._last, self._own = last, 0


def may_change(text: str, marks: Set[str]) -> bool:
    """Return whether a short statement denies something or has any of the `marks` of a change."""
    if len(text) > _MOST_OF_CHANGE:
        return False
    if text >= _FIRST_OF_CJK:
        return is_negated(text) or any(mark in text for mark in marks if mark >= _FIRST_OF_CJK)
    return not marks.isdisjoint(_WORD.findall(text.lower())) or is_negated(text)


def seems_to_contradict(newer: str, older: str) -> bool:
    """Return whether a statement seems to say another thing than an older of the same subject: another value, number,
    name or date, that it moved away from the older value, or that it denies the other.
    """
    if ": " in newer and ": " in older:  # parts of a list
        return False
    newer, older = _without_label(newer), _without_label(older)
    new, old = _statement(newer), _statement(older)
    if new is None or old is None or new.words == old.words:
        return False
    if is_negated(newer) != is_negated(older):
        return 2 * len({*new.content} & {*old.content}) >= len(old.content)
    if _is_left(new, old) or ends_alike(newer, older):
        return True
    is_same_frame = new.frame == old.frame and not are_about_others(newer, older)
    return (is_same_frame or begins_alike(newer, older)) and not _differ_twice(new.words, old.words)


def _differ_twice(newer: list[str], older: list[str]) -> bool:
    """Return whether two statements of one form differ in two places: in a subject and in its value."""
    if len(newer) != len(older):
        return False
    differing = [at for at, (new, old) in enumerate(zip(newer, older, strict=True)) if new != old]
    return differing[-1] - differing[0] >= len(differing)


def _statement(text: str) -> _Statement | None:
    """Return the parts of a short statement, without a label; None for other texts."""
    text = _without_label(text)
    if len(text) > _MOST_CHARS or ": " in text:  # of a list
        return None
    written_words = _WORD.findall(text)
    if not _LEAST_WORDS <= len(written_words) <= _MOST_WORDS:
        return None
    words = [word.lower() for word in written_words]
    content = [word for word in words if word not in STOP_WORDS and not word.isdecimal()]
    frame = [word for word in written_words if word.islower()]
    return _Statement(words, content, frame) if content else None


def _without_label(text: str) -> str:
    label, _, rest = text.partition(":") if ":" in text else ("", "", "")
    return rest[1:] if len(rest) > 1 and rest[0] == " " and label.isalpha() else text


def _noted(text: str, statement: _Statement | None) -> list[int]:
    """Return the slots that note a short text: by its form, of which the beginning, the first half, the end, the frame,
    and the first two words of content with the last; then by its subject, of a word and of two.
    """
    if statement is None:
        is_short = len(text) <= _MOST_CHARS and text >= _FIRST_OF_CJK  # words without blanks between them
        return [hash(text[:_LEAST_CJK]) & _MASK] if is_short else []
    words, content, frame = statement
    first, second = content[0], content[min(1, len(content) - 1)]
    half = (len(words) + 1) // 2
    forms = (
        words[:_LEAST_WORDS],
        words[:half],
        words[-_LEAST_WORDS:],
        frame,
        (first, content[-1]),
        (second, content[-1]),
    )
    return [*(hash(tuple(part)) & _MASK for part in forms), hash(first) & _MASK, hash((first, second)) & _MASK]


def _is_left(newer: _Statement, older: _Statement) -> bool:
    """Return whether a statement names the subject of the older one, and its value as left: "moved from X to Y"."""
    value = older.content[-1]
    if (
        value not in newer.content
        or newer.content[-1] == value
        or {*older.content[:2]}.isdisjoint({*newer.content} - {value})
    ):
        return False
    at = newer.words.index(value)
    return not (_LEFT.isdisjoint(newer.words[:at]) and _LEFT_NEXT.isdisjoint(newer.words[max(0, at - _NEXT) : at]))

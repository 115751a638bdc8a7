"""Values that a question names: a text with one of them answers it before a text with another in its place."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from kernel.core.lazy_regex import regex
from kernel.search.query import STOP_WORDS
from kernel.search.spellings import DIGEST, Value, days_of, folded, value_of

_MAX_LENGTH = 300  # characters of a question; longer ones are texts
_MOST = 4  # values of a question
_CACHED = 64  # questions, each of which several steps of a search ask for
# The word or the letters before a value, the marks between, and the value: a number, version, id or digest.
_NAMED = regex(
    r"(?<![^\W_])(?:([^\W\d_]{1,20}+)([-_ #:.]{0,2}))?"
    r"((?<![^\W\d_])[0-9a-f]{7,64}(?![^\W_])|\d[^\W_]*(?:[.,'’]\d+)*)"
)
_TIME = regex(r"(?<![\d:.])0?(\d{1,2}):(\d\d)(?![\d:])")
_YEAR = regex(r"(?:19|20)\d\d")
_VERSION = regex(r"(?<![\w.,])\d+(?:\.\d+){2,3}(?![\w,]|\.\d)")
_VAGUE = regex(r"\d{1,2}|(?:19|20)\d\d|\d+(?:s|[^\W\d_]{2,})|\d{1,2}\.\d")  # counts, years, units
_ROOM = regex(r"\d{1,3}[^\W\d_]")
_NUMBERS = regex(r"\d+")
_APART = {" ", ". ", ": "}  # a word before a number, not the beginning of an id
_BETWEEN = "-_ #:."


class NamedValues(NamedTuple):
    """The values that a question names, its times, and `heads`, the words before the values, which stand before others
    in their place too.
    """

    values: tuple[Value, ...]
    times: frozenset[tuple[str, str]]
    heads: frozenset[str]
    words: tuple[str, ...]
    parts: tuple[str, ...] = ()
    is_open: bool = True

    def share(self, text: str, knows: Callable[[str], bool]) -> float | None:
        """Return 1 if a text holds any of the values, 0 if it holds others in their place, None if it holds none."""
        text = folded(text)
        times = set(_TIME.findall(text)) if self.times else set[tuple[str, str]]()
        if self.times & times or any(value.share(text, knows) == 1.0 for value in self.values):
            return 1.0
        return 0.0 if times or any(self._others(text)) else None

    def _others(self, text: str) -> Iterator[object]:
        """Yield a true value if a text holds another in the place of one of the question."""
        for value in self.values:
            if value.days:
                yield _YEAR.search(text) and days_of(text)
            elif value.digest:
                yield DIGEST.search(text)
            elif value.words[0].count(".") > 1:
                yield _VERSION.search(text)
        for head in self.heads:
            yield _is_before_a_number(head, text)


@lru_cache(_CACHED)
def named_values(question: str) -> NamedValues | None:
    """Return the values in a question that is not a value itself; None if it names none."""
    if len(question) > _MAX_LENGTH or not _NUMBERS.search(question) or value_of(question) is not None:
        return None
    text = folded(question)
    times, days = frozenset(_TIME.findall(text)), sorted(days_of(text))
    dates = filter(None, (value_of(f"{year:04}-{month:02}-{day:02}") for year, month, day in days))
    of_days = {number for day in days for number in day}
    pairs = [
        (value, head)
        for head, between, name in _NAMED.findall(_TIME.sub(" ", text))
        if not of_days.issuperset(map(int, _NUMBERS.findall(name))) and (value := _value(head, between, name))
    ][:_MOST]
    values = (*dates, *(value for value, _ in pairs))[:_MOST]
    heads = frozenset(head for _, head in pairs if len(head) > 1 and head not in STOP_WORDS)
    words = (word for value, _ in pairs for word in value.words)
    return NamedValues(values, times, heads, tuple(dict.fromkeys(words))) if values or times else None


def _value(head: str, between: str, name: str) -> Value | None:
    """Return the value of a name after a word, or of both if they are an id; None for counts, years and units."""
    if head and between not in _APART and (len(name) > 1 or between):
        return value_of(f"{head}{between}{name}")
    if _VAGUE.fullmatch(name) or (_ROOM.fullmatch(name) and head in STOP_WORDS):
        return None
    return value_of(name)


def _is_before_a_number(head: str, text: str) -> bool:
    at = text.find(head)
    while at >= 0:
        after = text[at + len(head) : at + len(head) + 3].lstrip(_BETWEEN)
        if after[:1].isdigit() and not text[at - 1 : at].isalnum():
            return True
        at = text.find(head, at + 1)
    return False

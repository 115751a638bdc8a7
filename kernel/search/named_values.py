"""Values that a question names: a text with one of them answers it before a text with another in its place,
and the periods that it names, relative to the time of asking."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

from kernel.core.lazy_regex import regex
from kernel.search.query import STOP_WORDS
from kernel.search.spellings import DIGEST, MONTH_OF, Value, days_of, folded, value_of

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
_VERSION = regex(r"(?<![\w.,])\d+(?:\.\d+){1,3}(?![\w,]|\.\d)")
_VAGUE = regex(r"\d{1,2}|(?:19|20)\d\d|\d+(?:s|[^\W\d_]{2,})")  # counts, years, units
_AFTER_NAME = regex(r"\d{1,3}[^\W\d_]|\d{1,2}\.\d")  # room 12a, version 3.2, but not in 2.5 hours
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
            elif "." in value.words[0]:
                yield _VERSION.search(text)
        for head in self.heads:
            yield _is_before_a_number(head, text)


_BEFORE_MONTHS = frozenset("in of during since last until mid early late im en em ano au w v i".split())
_MONTH_YEAR = regex(r"([^\W\d_]{3,10})\.?,? (?:of |de )?((?:19|20)\d\d)(?!\d)")
_WORD_BEFORE_MONTH = regex(
    r"(?<![^\W_])([^\W\d_]{1,10}) (?=([^\W\d_]{3,10})(?![^\W_])(?!\.?,? (?:of |de )?(?:19|20)\d\d))"
)
_SINGLE_YEAR = regex(r"(?:in|during|since|im jahr|en|em|nel) ((?:19|20)\d\d)(?![-/\w])")
_PAST = regex(r"(?<![^\W_])(?:last|past|previous) (week|month|year|weekend|[a-z]{3,6}day)(?![^\W_])")
_AGO = regex(r"(?<![^\W_])(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten) (day|week|month|year)s? ago")
_NUMBER_WORDS = {word: at for at, word in enumerate("two three four five six seven eight nine ten".split(), 2)}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LENGTHS = {"day": 1, "week": 7, "month": 30, "year": 365}
Period = tuple[date, date]
"""The first day, and the first day after it."""


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
    if _VAGUE.fullmatch(name) or (_AFTER_NAME.fullmatch(name) and (not head or head in STOP_WORDS)):
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


def periods(question: str, today: date) -> list[Period]:
    """Return the periods that a question names, the most exact of them only."""
    text = folded(question)
    for names in (_days, _months, _years, _relative):
        if spans := sorted({span for span in names(text, today) if span[0] <= today}):
            return spans
    return []


def _days(text: str, _today: date) -> Iterator[Period]:
    for year, month, day in days_of(text):
        try:
            first = date(year, month, day)
        except ValueError:
            continue
        yield first, first + timedelta(1)


def _months(text: str, today: date) -> Iterator[Period]:
    for name, year in _MONTH_YEAR.findall(text):
        if month := MONTH_OF.get(name):
            yield _month(int(year), month)
    for before, name in _WORD_BEFORE_MONTH.findall(text):
        if before in _BEFORE_MONTHS and len(name) > 3 - (name == "may") and (month := MONTH_OF.get(name)):
            yield _month(today.year - (month > today.month), month)


def _month(year: int, month: int) -> Period:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _years(text: str, _today: date) -> Iterator[Period]:
    for year in map(int, _SINGLE_YEAR.findall(text)):
        yield date(year, 1, 1), date(year + 1, 1, 1)


def _relative(text: str, today: date) -> Iterator[Period]:
    if "yesterday" in text:
        yield today - timedelta(1), today
    for number, unit in _AGO.findall(text):
        length = _LENGTHS[unit]
        count = int(number) if number.isdigit() else _NUMBER_WORDS.get(number, 1)
        middle = today - timedelta(count * length)
        yield middle - timedelta(length // 2), middle + timedelta(length // 2 + 1)
    monday = today - timedelta(today.weekday())
    for unit in _PAST.findall(text):
        if unit == "month":
            first = today.replace(day=1)
            yield (first - timedelta(1)).replace(day=1), first
        elif unit == "year":
            yield date(today.year - 1, 1, 1), date(today.year, 1, 1)
        elif unit in {"week", "weekend"}:
            yield monday - timedelta(7 if unit == "week" else 2), monday
        elif unit in _WEEKDAYS:
            day = today - timedelta((today.weekday() - _WEEKDAYS.index(unit) - 1) % 7 + 1)
            yield day, day + timedelta(1)

"""Periods that a question names, relative to the time of asking: days, months, years, and "two weeks ago"."""

from collections.abc import Iterator
from datetime import date, timedelta

from kernel.core.lazy_regex import regex
from kernel.search.spellings import MONTH_OF, days_of, folded

_BEFORE_MONTHS = frozenset("in of during since last until mid early late im en em ano au w v i".split())
_MONTH_YEAR = regex(r"([^\W\d_]{3,10})\.?,? (?:of |de )?((?:19|20)\d\d)(?!\d)")
_WORD_BEFORE_MONTH = regex(
    r"(?<![^\W_])([^\W\d_]{1,10}) (?=([^\W\d_]{3,10})(?![^\W_])(?!\.?,? (?:of |de )?(?:19|20)\d\d))"
)
_YEAR = regex(r"(?:in|during|since|im jahr|en|em|nel) ((?:19|20)\d\d)(?![-/\w])")
_PAST = regex(r"(?<![^\W_])(?:last|past|previous) (week|month|year|weekend|[a-z]{3,6}day)(?![^\W_])")
_AGO = regex(r"(?<![^\W_])(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten) (day|week|month|year)s? ago")
_NUMBERS = {word: at for at, word in enumerate("two three four five six seven eight nine ten".split(), 2)}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LENGTHS = {"day": 1, "week": 7, "month": 30, "year": 365}
Period = tuple[date, date]
"""The first day, and the first day after it."""


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
    for year in map(int, _YEAR.findall(text)):
        yield date(year, 1, 1), date(year + 1, 1, 1)


def _relative(text: str, today: date) -> Iterator[Period]:
    if "yesterday" in text:
        yield today - timedelta(1), today
    for number, unit in _AGO.findall(text):
        length = _LENGTHS[unit]
        count = int(number) if number.isdigit() else _NUMBERS.get(number, 1)
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

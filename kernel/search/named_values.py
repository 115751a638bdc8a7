"""Values that a question names: a text with one of them answers it before a text with another in its place,
and the periods that it names, relative to the time of asking.

A spelling: whether a text holds the name, number, date, digest or part of a word that a query is, however written.
"""

import re
import string
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

from kernel.core.lazy_regex import regex
from kernel.core.text import composed, normalized
from kernel.search.query import STOP_WORDS
from kernel.search.word_forms import compound_stems

_LONGEST_NAME = 80  # characters of a query that is a value; a digest has 64
_CACHED_VALUES = 64  # queries, each of which several steps of a search ask for
_LEAST_GROUPED = 6  # characters of a number that may be in groups, as 555-0142
_PART = 0.9  # the share that a compound holds, or another form
_LEAST_PART, _LEAST_REST, _MOST_ENDING = 4, 2, 3  # letters of a part of a compound, before it, and after it
_MONTHS = """january januar januari janvier enero gennaio janeiro|february februar februari fevrier febrero febbraio
    fevereiro|march marz maart mars marzo marco mrt|april avril abril aprile|may mai mei maj mayo maggio maio|june juni
    juin junio giugno junho|july juli juillet julio luglio julho|august augustus augusti aout agosto|september septembre
    septiembre settembre setembro|october oktober octobre octubre ottobre outubro|november novembre noviembre novembro
    |december dezember decembre diciembre dicembre dezembro""".split("|")
MONTH_OF = {
    name[:size]: at for size in (3, 4, 99) for at, names in enumerate(_MONTHS, 1) for name in reversed(names.split())
}
_DATE = regex(
    r"(?<!\d)(?<![^\W\d_])(?=([^\W_]{1,10}?)(?:st|nd|rd|th|er)?[-/., 年月]{1,2}(?:de |of )?([^\W_]{1,10}?)"
    r"(?:st|nd|rd|th)?[-/., 年月]{1,2}(?:de )?(\d{4}|\d{1,2})(?!\d))"
)
_DATE_IN_ONE = regex(r"(?<!\d)((?:19|20)\d\d)([01]\d)([0-3]\d)(?!\d)")
_AROUND_YEAR = 32  # characters of a date before the beginning of its year and after
_MOST_OF_DATE = 4  # words of a query that is a date
# Patterns begin with the character that they look for, not with a look behind: other text is passed over quickly.
_GROUPED = regex(r"\d(?<![\d.,'’]\d)\d{0,2}(?:(?:,\d{3})+|(?:\.\d{3})+|(?:['’_\u00a0\u202f ]\d{3})+)(?![.,]?\d)")
_DECIMAL = regex(r",(?<=\d,)(?=\d)")
DIGEST = regex(r"(?<![^\W_])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}(?![^\W_])")
_WITH_NUMBER = regex(r"[^\W\d_]{2,40}+(?: (v?\d[-.\w]{0,40}|[0-9a-f]{7,64})|(\d{1,2}(?:\.\d{1,4}){0,3}))")
_NUMBER = regex(r"(?<![^\W_])[^\W_]*\d[^\W_]*(?:\.\d+)*")
_MEASURE = regex(r"(\d+)(?:[^\W\d_]{2,5}|[lgmh])")  # 160cm, but not 12a
_BETWEEN_PARTS = regex(r"[-_ ()+]+")
_ORDINAL = regex(r"(?:st|nd|rd|th)(?<=\d\w\w)(?![^\W_])")
_LEAST_PHONE = 9  # digits of a telephone number, which has a zero in its country, one to three digits elsewhere
_DIGIT = regex(r"\d")
_NOT_DIGITS = regex(r"\D+")
_LONG_WORD = regex(r"[^\W\d_]{6,60}")
_MARKS = regex("[\u0300-\u036f]+")
_AROUND = " \t\r\n?!.,;:\"'()#"

Day = tuple[int, int, int]


class Value(NamedTuple):
    """A query that is a single name, number, date, digest or word: how it may be written, the days it may mean, the
    parts of compounds with it, further words by which texts are found, and the number in a name; None if only the value
    is asked for.
    """

    written: re.Pattern[str]
    days: frozenset[Day] = frozenset()
    digest: str = ""
    parts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    number: str | None = None

    @property
    def is_open(self) -> bool:
        """Return whether a text without it may answer all the same."""
        return bool(self.parts) or self.number is not None

    def share(self, text: str, knows: Callable[[str], bool]) -> float | None:
        """Return the share of the value that a text holds, 0 if it is about another value, None if it is about none;
        `knows` tells words that are no compounds.
        """
        text = folded(text)
        plain = text if self.parts else _plain(text)  # a word has no digits
        if self.written.search(plain):
            return 1.0
        if any(not self.days.isdisjoint(days_of(part)) for part in self._around_years(text)):
            return 1.0
        digests = DIGEST.findall(text) if self.digest else ()
        if any(digest.startswith(self.digest) or self.digest.startswith(digest) for digest in digests):
            return 1.0
        if self.parts:
            is_part = any(part in text for part in self.parts) and any(
                self._is_part(word) and not knows(word) for word in _LONG_WORD.findall(text)
            )
            return _PART if is_part else None
        if self.number is None:
            return 0.0
        if not self.number or not _DIGIT.search(plain):
            return None
        return None if self.number in plain and self.number in _NUMBER.findall(plain) else 0.0

    def _around_years(self, text: str) -> Iterator[str]:
        """Yield the parts of a text in which the days may be written."""
        if self.days and not text.isascii():
            yield text  # perhaps with other digits
            return
        for year in {f"{year:04}" for year, _, _ in self.days}:
            at = text.find(year)
            while at >= 0:
                part = text[max(0, at - _AROUND_YEAR) : at + _AROUND_YEAR]
                part = part if at <= _AROUND_YEAR else part.lstrip(string.digits)  # a number that is cut is another
                yield part if at + _AROUND_YEAR >= len(text) else part.rstrip(string.digits)
                at = text.find(year, at + 1)

    def _is_part(self, word: str) -> bool:
        places = ((part, word.rfind(part)) for part in self.parts)
        return word.startswith(self.parts[0]) or any(
            at >= _LEAST_REST and len(word) - at - len(part) <= _MOST_ENDING for part, at in places
        )


def folded(text: str) -> str:
    """Return a text as the tokenizer of the index sees it: in small letters without diacritics."""
    return text.lower() if text.isascii() else _MARKS.sub("", normalized("NFKD", text)).casefold()


@lru_cache(_CACHED_VALUES)
def value_of(query: str) -> Value | None:
    """Return the value that a query is, or the number after its name; None for other queries."""
    surface = composed(query[: _LONGEST_NAME + 1].strip(_AROUND).lower())
    text = folded(surface)
    if not 1 < len(text) <= _LONGEST_NAME:
        return None
    if not _DIGIT.search(text) and len(text.split()) > 2:  # a value of several words has a number; most questions
        return None
    if text.isalpha():
        parts = (text, *map(folded, compound_stems(surface)))
        long = tuple(part for part in parts if len(part) >= _LEAST_PART)
        return Value(_written(text), parts=long, words=(surface,)) if len(text) >= _LEAST_PART else None
    days = days_of(text) if len(text.split()) <= _MOST_OF_DATE else set[Day]()
    if days:
        year, month, day = min(days)
        names = (word for name in _MONTHS[month - 1].split() for word in (name, name[:3]))
        numbers = (year, month, f"{month:02}", day, f"{day:02}", f"{day}th", f"{year}{month:02}{day:02}")
        return Value(_written(text), frozenset(days), words=(*names, *map(str, numbers)))
    text = _plain(text)
    ordinal = _WITH_NUMBER.fullmatch(text)
    if " " in text and not ordinal and not all(any(map(str.isdigit, word)) for word in text.split()):
        return None
    name = _BETWEEN_PARTS.sub("", (ordinal and ordinal[1]) or text).removeprefix("sha256:")
    digest = name if DIGEST.fullmatch(name) else ""
    if not any(map(str.isdigit, name)):
        name = name.replace(".", "")
        return Value(_written(name), words=(name,), number="") if name.isalpha() else None
    sizes = range(2, len(name) - 1) if not digest and len(name) >= _LEAST_GROUPED else ()
    pieces = (piece for size in sizes for piece in (name[:size], name[size:]) if piece.isalnum())
    if measure := _MEASURE.fullmatch(name):
        pieces = (measure[1], name[measure.end(1) :])
    number = (ordinal[1] or ordinal[2]).removeprefix("v") if ordinal else None
    at_home = [f"0{name[size:]}" for size in (1, 2, 3)] if text[0] == "+" and len(name) >= _LEAST_PHONE else []
    return Value(_written(name, *at_home), digest=digest, words=(name, *pieces), number=number)


def _written(*names: str) -> re.Pattern[str]:
    """Return the pattern of names or numbers whose parts may be apart, and which are no part of another."""
    return re.compile("|".join(map(_form, names)))


def _form(name: str) -> str:
    name = name[1:] if name[0] == "v" and name[1:2].isdigit() else name
    has_point, is_long = "." in name, len(name) >= _LEAST_GROUPED
    apart = "[-_ ]?" if has_point else "[-_ .]{0,2}" if name.isalpha() else "[-_ ()]{0,2}" if is_long else "[-_]?"
    first, *rest = map(re.escape, name)
    if first == "0" and len(name) >= _LEAST_PHONE:
        first = r"(?:(?<![^\W_])(?<!\d[.,])|(?<=\+\d\d))0?"
    elif name[0].isdigit():
        first = rf"(?<![^\W_])(?<!\d[.,])(?:v\.? ?)?{first}"
    else:
        first += rf"(?<![^\W_]{first})(?<!\d[.,]{first})"
    if measure := _MEASURE.fullmatch(name):
        rest[measure.end(1) - 1] = f" ?{rest[measure.end(1) - 1]}"
    after = r"(?![^\W_])(?![.,]\d)" + r"(?![-+][^\W_])" * has_point
    return apart.join((first, *rest)) + after


def days_of(text: str) -> set[Day]:
    """Return the days in a text; of 3/4/2026 both that it may mean."""
    days = set[Day]()
    for first, second, last in _DATE.findall(_DATE_IN_ONE.sub(r"\1-\2-\3", text)):
        readings = ((first, second, last),) if len(first) == 4 and first.isdigit() else ()
        readings = readings or (((last, first, second), (last, second, first)) if len(last) == 4 else ())
        for year, month, day in readings:
            number = int(month) if month.isdecimal() else MONTH_OF.get(month, 0)
            if day.isdecimal() and 1 <= number <= 12 and 1 <= int(day) <= 31:
                days.add((int(year), number, int(day)))
    return days


def _plain(text: str) -> str:
    """Return a text with numbers in one form: without the marks between thousands and endings, with a decimal point."""
    text = _ORDINAL.sub("", text)
    return _DECIMAL.sub(".", _GROUPED.sub(lambda number: _NOT_DIGITS.sub("", number[0]), text))


_MAX_LENGTH = 300  # characters of a question; longer ones are texts
_MOST = 4  # values of a question
_CACHED = 64  # questions, each of which several steps of a search ask for
# The word or the letters before a value, the marks between, and the value: a number, version, id or digest.
_NAMED = regex(
    r"(?<![^\W_])(?:([^\W\d_]{1,20}+)([-_ #:.]{0,2}))?"
    r"((?<![^\W\d_])[0-9a-f]{7,64}(?![^\W_])|\d[^\W_]*(?:[.,'’]\d+)*)"
)
_TIME = regex(r"(?<![\d:.])0?(\d{1,2}):(\d\d)(?!:?\d)")
_YEAR = regex(r"(?:19|20)\d\d")
_VERSION = regex(r"(?<![\w.,])\d+(?:\.\d+){1,3}(?![\w,]|\.\d)")
_VAGUE = regex(r"\d{1,2}|(?:19|20)\d\d|\d+(?:s|[^\W\d_]{2,})")  # counts, years, units
_AFTER_NAME = regex(r"\d{1,3}[^\W\d_]|\d{1,2}\.\d")  # room 12a, version 3.2, but not in 2.5 hours
_NUMBERS = regex(r"\d+")
_APART = {" ", ". ", ": "}  # a word before a number, not the beginning of an id
_BETWEEN = "-_ #:."


class NamedValues(NamedTuple):
    """The values that a question names, its times, its names with marks, and `heads`, the words before the values,
    which stand before others in their place too.
    """

    values: tuple[Value, ...]
    times: frozenset[tuple[str, str]]
    heads: frozenset[str]
    words: tuple[str, ...]
    names: frozenset[str] = frozenset()
    parts: tuple[str, ...] = ()
    is_open: bool = True

    def share(self, text: str, knows: Callable[[str], bool]) -> float | None:
        """Return 1 if a text holds any of the values, 0 if it holds others in their place, None if it holds none."""
        if not self.names.isdisjoint(names_in(text)):
            return 1.0
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


_AROUND_NAMES = "?!,;:\"'`()[]"
_AFTER_NAMES = f"{_AROUND_NAMES}."
_OF_OWNERS = regex("['\u2019]s(?!\\w)")
_NAME_MARKS = frozenset("#@/\\$~_+=%&|*<>")
_MAY_BE_MARKED = regex(r"[-#@/\\$~_+=%&|*<>.](?!\s|\Z)|\d|[A-HJ-Z](?![a-z])|[+#-](?!\w)")
_LONGEST_ACRONYM = 5
_READ = 10_000  # characters of a text that are searched for names
_NO_NAMES = {"A", "I"}


def marked_names(question: str) -> set[str]:
    """Return the names in a question that the tokenizer of the index would cut or fold: `C++`, `--force`, `/users`,
    `DATABASE_URL`, `v2` and acronyms, as `names_in` returns those of a text.
    """
    if len(question) > _MAX_LENGTH or not _MAY_BE_MARKED.search(question):
        return set()
    return {_folded(name) for name in _bare_names(question) if _is_marked(name, question)}


def names_in(text: str) -> frozenset[str]:
    """Return the words of a text without the punctuation around them, in small letters unless they are options; of a
    long text those of its beginning.
    """
    return _names_of_statement(text) if len(text) <= _MAX_LENGTH else _read_names(text[:_READ])


@lru_cache(_CACHED)
def _names_of_statement(text: str) -> frozenset[str]:
    return _read_names(text)


def _read_names(text: str) -> frozenset[str]:
    has_options = text[0:1] == "-" or " -" in text
    return frozenset(map(_folded, _bare_names(text)) if has_options else _bare_names(text.lower()))


def _bare_names(text: str) -> list[str]:
    text = _OF_OWNERS.sub("", text) if "'" in text or "\u2019" in text else text
    return [word.rstrip(_AFTER_NAMES).lstrip(_AROUND_NAMES) for word in text.split()]


def _folded(name: str) -> str:
    return name if name[:1] == "-" else name.lower()  # -f is not -F


def _is_marked(name: str, question: str) -> bool:
    if not any(map(str.isalpha, name)):  # a number, which is a value
        return False
    if name[0] in "-." or not _NAME_MARKS.isdisjoint(name) or any(map(str.isdigit, name)) or "." in name[1:-1]:
        return True
    is_acronym = name.isupper() and len(name) <= _LONGEST_ACRONYM and name not in _NO_NAMES
    return is_acronym and (not question.isupper() or len(question.split()) == 1)


_BEFORE_MONTHS = frozenset("in of during since last until mid early late im en em ano au w v i".split())
_MONTH_YEAR = regex(r"([^\W\d_]{3,10})\.?,? (?:of |de )?((?:19|20)\d\d)(?!\d)")
_WORD_BEFORE_MONTH = regex(
    r"(?<![^\W_])([^\W\d_]{1,10}) (?=([^\W\d_]{3,10})(?![^\W_])(?!\.?,? (?:of |de )?(?:19|20)\d\d))"
)
_SINGLE_YEAR = regex(r"(?:in|during|since|im jahr|en|em|nel) ((?:19|20)\d\d)(?![-/\w])")
_PAST = regex(r"(?<![^\W_])(?:last|past|previous) (week|month|year|weekend|[a-z]{3,6}day)(?![^\W_])")
_AGO = regex(r"(?<![^\W_])(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten) (day|week|month|year)s? ago")
_PERIOD_PART = regex(r"\d|yesterday|(?:last|past|previous) | ago")  # in each of these but months
_LETTERS = regex(r"[^\W\d_]+")
_NUMBER_WORDS = {word: at for at, word in enumerate("two three four five six seven eight nine ten".split(), 2)}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LENGTHS = {"day": 1, "week": 7, "month": 30, "year": 365}
Period = tuple[date, date]
"""The first day, and the first day after it."""


@lru_cache(_CACHED)
def named_values(question: str) -> NamedValues | None:
    """Return the values in a question that is not a value itself; None if it names none."""
    names = frozenset(name for name in marked_names(question) if not name.isalnum())
    if len(question) > _MAX_LENGTH or not (names or _NUMBERS.search(question)) or value_of(question) is not None:
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
    return NamedValues(values, times, heads, tuple(dict.fromkeys(words)), names) if values or times or names else None


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
    if not _PERIOD_PART.search(text) and MONTH_OF.keys().isdisjoint(_LETTERS.findall(text)):  # in a tenth of the time
        return []
    for names in (_days, _months, _years, _relative):
        if spans := sorted({span for span in names(text, today) if span[0] <= today}):
            return spans
    return []


def _days(text: str, _today: date) -> Iterator[Period]:
    for year, month, day in days_of(text):
        try:
            first = date(year, month, day)
            end = first + timedelta(1)
        except (ValueError, OverflowError):  # no day, or the last of all
            continue
        yield first, end


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

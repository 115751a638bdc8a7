"""Times as they are stored, such as `2026-11-21T10:00:00.000Z`, and the ages and durations that people write."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from kernel.core.lazy_regex import regex

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HAS_TIME = regex(r"[T:\s]")
_WEEK = regex(r"[0-9]{4}-?W[0-9]{2}(?!-?[0-9])")
_SPAN = regex(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
# Wordings of times in the past, and of times to come. A month counts 30 days, and a year 365.
WORDINGS = "a time such as 2026-01-31, 2026-01-31T08:00, 31 Jan, yesterday, monday, 7d or 2 weeks ago"
COMING_WORDINGS = "a time such as 2026-01-31, 2026-01-31T08:00, 31 Jan, tomorrow, monday, 7d or in 2 weeks"
_END_OF_DAY = time(23, 59, 59, 999_000)
_MOST_CHARS = 60
_AGE = regex(r"(?:([0-9]{1,6})|an?|last|past|next) ?([a-z]+)")
_SECONDS = {
    f"{word}{end}": seconds
    for words, seconds in (
        ("s sec second", 1),
        ("m min minute", 60),
        ("h hr hour", 3600),
        ("d day", 86_400),
        ("w wk week", 7 * 86_400),
        ("mo mon month", 30 * 86_400),
        ("y yr year", 365 * 86_400),
    )
    for word in words.split()
    for end in ("", "s")
}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = "january february march april may june july august september october november december".split()
_LEAST_LETTERS = 3  # of the name of a day or a month
_HOUR = regex(r"(.*?)(?: at|,)? ?\b([0-9]{1,2}):([0-9]{2})")
_DAY_OF_MONTH = regex(r"([0-9]{1,2})(?:st|nd|rd|th|\.)?")
_WITH_DOTS = regex(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})")


def iso(moment: datetime) -> str:
    """Return a moment in UTC, with milliseconds, as it is stored; a moment without a zone is taken as UTC."""
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_time(text: str) -> str | None:
    """Return any ISO 8601 time or date as it is stored, or None; a time without a zone is taken as UTC.

    A whole week is neither, though `datetime` takes it for its Monday.
    """
    plain = text.strip()
    try:
        return None if _WEEK.match(plain) else iso(datetime.fromisoformat(plain))
    except (ValueError, OverflowError):
        return None


def end_of_day(text: str, moment: str) -> str:
    """Return the last millisecond of the day if `text` is a date, else `moment`, the time it was read as."""
    return moment if _HAS_TIME.search(text.strip()) else f"{moment[:10]}T23:59:59.999Z"


def stored_time(text: str) -> datetime:
    """Return a time of a row; 1970 for a text that is none, which a row from elsewhere may hold."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return EPOCH
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def later(moment: str, span: timedelta) -> str:
    """Return a stored time moved by a span, which may be negative; raises OverflowError outside of years 1 to 9999."""
    return iso(datetime.fromisoformat(moment) + span)


def span(text: str) -> timedelta | None:
    """Return a span such as 90d, 12h, 30m or 10s, or None."""
    match = _SPAN.fullmatch(text.strip())
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None


def past_time(text: str, now: datetime) -> str | None:
    """Return the time, as it is stored, that a person means by a date, an age or a word such as `yesterday`, or None.

    A day begins at midnight in the zone of `now`, or for a `now` without a zone in that of this machine.
    """
    return _time_meant(text, now, is_coming=False)


def coming_time(text: str, now: datetime) -> str | None:
    """Return the time, as it is stored, that a person means by a date, a span or a word such as `tomorrow`, or None.

    A day lasts to its end, in the zone of `past_time`.
    """
    return _time_meant(text, now, is_coming=True)


def _time_meant(text: str, now: datetime, *, is_coming: bool) -> str | None:
    words = " ".join(text[:_MOST_CHARS].replace(",", " , ").lower().split()).replace(" , ", ", ")
    is_coming = is_coming and not words.endswith(" ago")
    words = words.removeprefix("in ").removesuffix(" from now") if is_coming else words.removesuffix(" ago")
    try:
        moment = datetime.fromisoformat(text.strip())
        if is_coming and not _HAS_TIME.search(text.strip()):
            moment = datetime.combine(moment, _END_OF_DAY)
    except ValueError:
        moment = None if len(text) > _MOST_CHARS else _worded(words, now, is_coming=is_coming)
    try:
        if moment is None:
            return None
        return iso(moment.replace(tzinfo=now.tzinfo).astimezone(UTC) if moment.tzinfo is None else moment)
    except (ValueError, OverflowError):
        return None


def _worded(words: str, now: datetime, *, is_coming: bool) -> datetime | None:
    """Return the moment that a wording means; one without a zone has that of `now`."""
    if words == "now":
        return now
    if (match := _AGE.fullmatch(words)) and match[2] in _SECONDS:
        if words.startswith(("last ", "past ") if is_coming else "next "):
            return None
        try:
            seconds = int(match[1] or 1) * _SECONDS[match[2]]
            return now + timedelta(seconds=seconds if is_coming else -seconds)
        except OverflowError:
            return None if is_coming else EPOCH
    hour = _END_OF_DAY if is_coming else time()
    try:
        if match := _HOUR.fullmatch(words):
            words, hour = match[1] or "today", time(int(match[2]), int(match[3]))
        today, date_words = now.date(), words.replace("/", "-")
        day = (_coming_day if is_coming else _day)(words, today) or _date(date_words, today, is_coming=is_coming)
    except (ValueError, OverflowError):  # such as the 31st of June, and days before the year 1
        return None
    return datetime.combine(day, hour) if day else None


def _day(words: str, today: date) -> date | None:
    """Return the day that a word means, such as `yesterday`, `monday` or `this month`."""
    days_back = {"today": 0, "yesterday": 1, "this week": today.weekday(), "this month": today.day - 1}
    days_back["this year"] = today.timetuple().tm_yday - 1
    if (index := _index(words.removeprefix("last "), _DAYS)) is not None:
        days_back[words] = (today.weekday() - index) % 7 or 7
    return today - timedelta(days=days_back[words]) if words in days_back else None


def _coming_day(words: str, today: date) -> date | None:
    """Return the day that a word means, such as `tomorrow`, `monday` or the last of `this month`."""
    month_after = (today.replace(day=1) + timedelta(days=31)).replace(day=1)
    days = {"today": 0, "tomorrow": 1, "yesterday": -1, "this week": 6 - today.weekday()}
    days["this month"] = (month_after - today).days - 1
    days["this year"] = (date(today.year, 12, 31) - today).days
    if (index := _index(words.removeprefix("next "), _DAYS)) is not None:
        days[words] = (index - today.weekday()) % 7 or 7
    return today + timedelta(days=days[words]) if words in days else None


def _date(words: str, today: date, *, is_coming: bool) -> date | None:
    """Return a date such as 31.1.2026, 2026-1-31, 2026-01, 31 Jan or January 31, 2026; raises ValueError."""
    if match := _WITH_DOTS.fullmatch(words):
        return date(int(match[3]), int(match[2]), int(match[1]))
    if "-" in words:
        return date(*map(int, [*words.split("-", 2), "1"][:3]))
    year = month = day = 0
    for word in words.replace(",", " ").split():
        if not month and (index := _index(word.removesuffix("."), _MONTHS)) is not None:
            month = index + 1
        elif not day and (match := _DAY_OF_MONTH.fullmatch(word)):
            day = int(match[1])
        elif not year and len(word) == len("2026"):
            year = int(word)
        else:
            return None
    if not month:
        return None
    moment = date(year or today.year, month, day or 1)
    return moment if year else _nearest(moment, today, is_coming=is_coming)


def _nearest(moment: date, today: date, *, is_coming: bool) -> date:
    """Return a day of this year, or of the next or last if it is past or to come."""
    if moment >= today if is_coming else moment <= today:
        return moment
    return moment.replace(year=today.year + (1 if is_coming else -1))


def _index(word: str, names: Sequence[str]) -> int | None:
    near = (index for index, name in enumerate(names) if name.startswith(word))
    return next(near, None) if len(word) >= _LEAST_LETTERS else None

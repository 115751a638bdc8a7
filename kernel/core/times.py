"""Times as they are stored, such as `2026-11-21T10:00:00.000Z`, and the ages and durations that people write."""

from datetime import UTC, datetime, timedelta

from kernel.core.lazy_regex import regex

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPAN = regex(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def iso(moment: datetime) -> str:
    """Return a moment in UTC, with milliseconds, as it is stored; a moment without a zone is taken as UTC."""
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_time(text: str) -> str | None:
    """Return any ISO 8601 time or date as it is stored, or None; a time without a zone is taken as UTC."""
    try:
        return iso(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return None


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

"""The parts that all sources share: the texts, times, tags and bounds of the records that they become."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.text import one_line
from kernel.core.times import iso, utc_time
from kernel.memories.import_records import NOTHING, LeftOut, Record, shown

MAX_TEXT = 1_000_000  # characters of one memory, the bound of `brain`; that of `paths` is a little larger
MAX_NAME = 1000  # characters of a title, a name or a tag
MAX_TAGS = 64
EMPTY = "empty"  # why a text is left out
_SECONDS_END = 2e10  # the year 2603; larger numbers are milliseconds, microseconds or nanoseconds
_NANOSECONDS_END = _SECONDS_END * 1e9
_SECONDS_BEGIN = 1e8  # the year 1973; smaller numbers are no times, but years, days or counts
# A date as one number, by its length: of front matter, and of the names of many notes.
_COMPACT = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_DIGITS = regex(r"\d{9,19}(?:\.\d+)?", 0)
_LEAST_VECTOR = 16  # numbers of a list
_SET_ASIDE = {"archived", "paused", "inactive", "expired", "disabled", "superseded", "obsolete"}
_NO = {"", "0", "false", "no", "n", "f", "null", "none"}
CREATED = ("created_at", "createdAt", "timestamp", "created", "created_timestamp", "created_time", "creation_date")
UPDATED_AT = ("updated_at", "updatedAt", "updated_timestamp", "modified_at", "last_updated", "lastUpdated")
_TIMES = {*CREATED, *UPDATED_AT, "created_at_iso", "updated_at_iso", "created_at_epoch", "expiration_date"}

Values = Mapping[str, Any]


Item = Record | LeftOut


def damaged(name: str, problem: str) -> Fault:
    """Return the fault for a source that cannot be read; nothing of it is imported."""
    return Fault("invalid", f"{shown(name)}: {shown(problem)}.{NOTHING}")


def left_out(fault: Fault) -> LeftOut:
    """Return a damaged part of a source, from the fault for it as a source of its own."""
    name, _, problem = fault.message.removesuffix(NOTHING).rstrip(".").partition(": ")
    return LeftOut(problem, name, is_damage=True)


def text_of(values: Values, *names: str) -> str:
    """Return the first of these values that is a text with something in it."""
    for name in names:
        value = values.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def id_of(values: Values, *names: str) -> str:
    """Return the first of these values that is a text, a number, or an id as MongoDB exports it."""
    for name in names:
        value = mapping_in(values.get(name)).get("$oid") or values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def utc_of(value: object) -> str:
    """Return a time in any of the forms that other programs write, as stored here; empty for other texts."""
    if isinstance(value, dict):  # as MongoDB exports it
        value = cast("dict[str, object]", value).get("$date")
    if isinstance(value, str | int) and not isinstance(value, bool):
        bare = str(value).strip()
        if len(bare) in _COMPACT and (date := _compact(bare)):
            return date
        if isinstance(value, str) and not _DIGITS.fullmatch(bare):
            return _time_in_text(bare)
        value = float(bare)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # An infinite number gets no smaller by division.
    if not is_number or not _SECONDS_BEGIN <= value <= _NANOSECONDS_END:
        return ""
    seconds = abs(value)
    while seconds > _SECONDS_END:
        seconds /= 1000
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return ""
    return iso(moment)


def _time_in_text(text: str) -> str:
    """Return a time in the form of ISO 8601, or nearly: with slashes, with blanks and a name around the offset."""
    bare = text.removesuffix(" UTC").replace(" +", "+").replace(" -", "-")
    bare = bare.replace("/", "-") if bare[4:5] == "/" else bare
    return utc_time(bare) or utc_time(f"{bare}-01") or ""  # a month is its first day


def _compact(digits: str) -> str:
    """Return a date that is written as one number; empty for other numbers, such as most numbers of seconds."""
    try:
        moment = datetime.strptime(digits, _COMPACT[len(digits)]).replace(tzinfo=UTC)
    except ValueError:
        return ""
    return iso(moment) if 1990 <= moment.year < 2100 else ""


def is_deleted(values: Values) -> bool:
    """Return whether a program says of a row that it is deleted."""
    is_marked = any(
        _is_true(values.get(name)) for name in ("deleted_at", "deletedAt", "is_deleted", "isDeleted", "deleted")
    )
    return is_marked or not _states(values).isdisjoint({"deleted", "delete", "removed", "trashed"})


def is_set_aside(values: Values) -> bool:
    """Return whether a program says of a row that it is kept but no longer used."""
    if values.get("state") or values.get("status"):  # the time of an earlier state may stand beside it
        return not _states(values).isdisjoint(_SET_ASIDE)
    is_off = any(
        values.get(name) is not None and not _is_true(values[name]) for name in ("is_active", "isActive", "active")
    )
    archived = ("archived_at", "archivedAt", "archived", "is_archived", "isArchived")
    return is_off or any(_is_true(values.get(name)) for name in archived)


def _is_true(value: object) -> bool:
    """Return whether a value is none of the forms in which programs write a no."""
    return bool(value) and str(value).strip().lower() not in _NO


def _states(values: Values) -> set[str]:
    return {str(values.get(name)).lower() for name in ("state", "status", "event")}


def time_in(values: Values, *names: str) -> str:
    """Return the first of these values that is a time."""
    return next((time for name in names if (time := utc_of(values.get(name)))), "")


def share_in(value: object) -> float:
    """Return a number within 0 and 1; 1 for anything else."""
    return min(1.0, max(0.0, value)) if isinstance(value, float | int) else 1.0


def texts_in(value: object) -> list[str]:
    """Return the texts of a list, of a JSON list in a text, or between the commas of a text."""
    if isinstance(value, str):
        value = _decoded_list(value) if value.lstrip().startswith("[") else value.split(",")
    return [item.strip() for item in list_in(value) if isinstance(item, str) and item.strip()]


def list_in(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _decoded_list(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text.split(",")


def tags_of(*groups: object) -> tuple[str, ...]:
    """Return the tags of several lists, each once; a tag holds no comma, since some dialects separate them by it."""
    tags = (" ".join(tag.replace(",", " ").split()) for group in groups for tag in texts_in(group))
    return tuple(dict.fromkeys(filter(None, tags)))


def fitting(tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags that a memory can have, of which it has a bounded number."""
    return tuple(tag for tag in tags if len(tag) <= MAX_NAME and tag.isprintable())[:MAX_TAGS]


def mapping_in(value: object) -> dict[str, Any]:
    """Return an object, or an object as JSON in a text; empty for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not empty."""
    return {name: value for name, value in values.items() if value not in (None, "", (), [], {})}


def other_members(values: Values, *known: str) -> dict[str, Any]:
    """Return the members of a row that have no place of their own in a memory, without vectors; and times that are none
    that can be read.
    """
    return {
        name: value
        for name, value in filled(values).items()
        if (name not in known or (name in _TIMES and not utc_of(value)))
        and not _is_vector(value)
        and isinstance(value, str | int | float | list | dict)
    }


def _is_vector(value: object) -> bool:
    numbers = list_in(value)
    return len(numbers) >= _LEAST_VECTOR and all(isinstance(number, int | float) for number in numbers)


def headed(parts: Mapping[str, str]) -> str:
    """Return texts below their headings, without those that are empty."""
    return "\n\n".join(f"{name}:\n{text.strip()}" for name, text in parts.items() if text.strip())


def clean_line(text: str, limit: int = MAX_NAME) -> str:
    """Return a title or name on one line, without characters that cannot be printed."""
    return one_line(text, limit)

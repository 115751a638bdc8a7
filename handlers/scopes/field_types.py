"""Argument types that several tools of `scopes` share, their bounds, and the checks that types cannot express."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from handlers.scopes import errors
from kernel.core.lazy_regex import regex
from kernel.core.text import composed, nested_deeper
from kernel.core.times import end_of_day, utc_time

MAX_TEXT_LENGTH = 1_048_576  # characters
MAX_DEPTH = 32  # levels of objects and lists; an export with all that surrounds them stays below 96, the limit of YAML

_FILLED = {"name", "title", "tagName", "agent_id", "content", "resolution"}  # that may not be blank
_ABOUT_A_CHANGE = {"id", "change_reason", "updated_by", "expected_version"}
_INVISIBLE = regex("[\u00ad\u200b\u2060\ufeff]")  # soft hyphen, zero-width space, word joiner, byte order mark

Id = Annotated[str, Meta(min_length=1, max_length=256)]
Name = Annotated[str, Meta(min_length=1, max_length=1024)]
Label = Annotated[str, Meta(max_length=1024)]
Text = Annotated[str, Meta(max_length=MAX_TEXT_LENGTH)]
NonEmptyText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_LENGTH)]
Time = Annotated[str, Meta(max_length=64)]
Object = dict[str, Any]
Limit = Annotated[Annotated[int, Meta(ge=0, le=2**31)] | None, Meta(description="Most rows to return, at most 100")]
Offset = Annotated[Annotated[int, Meta(ge=0, le=2**53)] | None, Meta(description="Rows to skip")]
ScopeId = Annotated[
    Id | None, Meta(description="Id of that org, project or session; needed unless scopeType is global")
]
AsOf = Annotated[Time | None, Meta(description="Read as it stood at this ISO 8601 time")]


def validate(request: Struct) -> None:
    """Raises a Fault for NUL characters in any argument, blank names, and values nested deeper than `MAX_DEPTH`."""
    config = request.__struct_config__
    for field, wire in zip(request.__struct_fields__, request.__struct_encode_fields__, strict=True):
        value = getattr(request, field)
        if isinstance(value, str):
            if "\0" in value:
                raise errors.invalid(wire, "must not hold NUL characters")
            # In a list action these fields are filters, and a blank one matches nothing.
            if wire in _FILLED and config.tag not in {"list", None} and not normal_name(value):
                is_required = wire in errors.required_fields(type(request))
                raise errors.required(wire) if is_required else errors.invalid(wire, "must not be blank")
        elif isinstance(value, Struct):
            _validate_part(wire, value)
        elif nested_deeper(value, MAX_DEPTH):
            raise errors.invalid(wire, f"must not be nested deeper than {MAX_DEPTH} levels")


def check_changes(request: Struct) -> None:
    """Raises a Fault for an update that names no field to change."""
    fields = zip(request.__struct_fields__, request.__struct_encode_fields__, strict=True)
    first, *others = changeable = {wire: field for field, wire in fields if field not in _ABOUT_A_CHANGE}
    if all(getattr(request, field) is None for field in changeable.values()):
        raise errors.invalid(first, f"is needed, or another field to change: {', '.join(others)}")


def _validate_part(path: str, part: Struct) -> None:
    for field, wire in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True):
        value: str | list[str] | bool | None = getattr(part, field)
        texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        if any("\0" in text for text in texts):
            raise errors.invalid(f"{path}.{wire}", "must not hold NUL characters")


def timestamp(field: str, text: str | None) -> str | None:
    """Return an ISO 8601 time in UTC with milliseconds; None for None. Raises a Fault for any other text."""
    time = None if text is None else utc_time(text)
    if time is None and text is not None:
        raise errors.invalid(field, "is not an ISO 8601 time", "write it as 2026-01-31T12:00:00Z")
    return time


def end_time(field: str, text: str) -> str | None:
    """Return an ISO 8601 time as by `timestamp`; a date stands for the end of that day in UTC."""
    time = timestamp(field, text)
    return time and end_of_day(text, time)


def normal_name(name: str) -> str:
    """Return a name as it is stored: composed (NFC), without blanks at its ends and invisible characters."""
    return _INVISIBLE.sub("", composed(name)).strip()


def name_key(name: str) -> dict[str, str]:
    """Return a name as the parameters `name`, its stored form, and `fold`, by which it is found in any case."""
    return {"name": normal_name(name), "fold": normal_name(name).casefold()}

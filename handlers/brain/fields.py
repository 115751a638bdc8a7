"""Which keys of its rows a reading tool returns: whole rows are long, and most callers need two or three keys."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct

from kernel.core.errors import Fault

_Key = Annotated[str, Meta(min_length=1, max_length=64)]
Fields = Annotated[
    Annotated[list[_Key], Meta(max_length=64)] | None,
    Meta(description="Only these keys of each row, and its id; every key if left out"),
]
ALWAYS_KEPT = ("id",)


def check_fields(fields: Sequence[str] | None, *row_types: type[Struct]) -> None:
    """Raises Fault if rows of none of these types have a key of that name."""
    keys = dict.fromkeys(name for kind in row_types for name in kind.__struct_fields__)
    for name in fields or ():
        if name not in keys:
            raise Fault("invalid", f"Invalid arguments: fields: there is no {name!r}; the keys are {', '.join(keys)}")


def keep_fields(fields: Sequence[str] | None, rows: Iterable[Struct]) -> None:
    """Leaves every other key out of the rows as they are encoded."""
    if fields is None:
        return
    for row in rows:
        for name in row.__struct_fields__:
            if name not in ALWAYS_KEPT and name not in fields:
                setattr(row, name, UNSET)  # msgspec leaves it out for a field of any type

"""Helpers that all tools of `brain` share: databases and their index spaces, ids, times and JSON columns."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from handlers.brain.settings import DATABASES
from kernel.calls.settings import setting
from kernel.core.errors import Fault
from kernel.core.times import end_of_day, utc_time
from kernel.search import index
from kernel.store.transaction import Tx

R = TypeVar("R", bound=Struct)
ID_LENGTH = 21  # characters after the prefix, as in the ids of the original
NO_PREFIX = "bare"  # label of a fault whose message is returned without `Error: `


def databases(tx: Tx) -> tuple[str, ...]:
    """Return the names of the configured databases, in search order."""
    return setting(tx, DATABASES)


def space(tx: Tx, db: str, name: str = "db") -> str:
    """Return the index and history space of a database (`brain:core`); raises Fault naming the parameter if it is
    unknown.
    """
    names = databases(tx)
    if db not in names:
        raise Fault("invalid", f"Invalid arguments: {name} is one of {', '.join(names)}")
    return f"brain:{db}"


def new_id(tx: Tx, prefix: str) -> str:
    """Return a fresh id in the contract's form, `mem_` and 21 characters; ids sort by time."""
    rest = tx.new_id(prefix).removeprefix(f"{prefix}_")
    return f"{prefix}_{rest[-ID_LENGTH:]}"


def json_text(value: Any) -> str | None:
    """Return a list or object as JSON text for a column; None stays None."""
    return None if value is None else msgspec.json.encode(value).decode()


def decode_words(column: str | None) -> list[str]:
    """Return the words of a JSON column; empty if it is not a list of strings."""
    try:
        return msgspec.json.decode(column, type=list[str]) if column else []
    except msgspec.DecodeError:
        return []


def parse_time(name: str, value: str | None) -> str | None:
    """Return a date or time in the format of the rows; raises Fault naming the parameter if it is neither."""
    if value is None:
        return None
    time = utc_time(value)
    if time is None:
        raise Fault("invalid", f"Invalid arguments: {name} is a time or date in ISO 8601")
    return time


def parse_end(name: str, value: str | None) -> str | None:
    """Return the end of a validity in the format of the rows; a date stands for the end of that day in UTC."""
    time = parse_time(name, value)
    return time and value and end_of_day(value, time)


def embedding(tx: Tx) -> dict[str, Any]:
    """Return the columns of a row that is indexed now, by name."""
    return dict(zip(("has_embedding", "embedding_model"), embedding_columns(tx), strict=True))


def embedding_columns(tx: Tx) -> tuple[int, str | None]:
    """Return the `has_embedding` and `embedding_model` of a row that is indexed now."""
    model = tx.embedding_model if index.has_model(tx) else None
    return (1, model[0]) if model else (0, None)


def new_row(kind: type[R], request: Struct, **values: Any) -> R:
    """Return a row of the values, else of the fields of the request, lists and objects as JSON; None for the rest."""
    fields = kind.__struct_fields__
    return kind(**{name: stored(values.get(name, getattr(request, name, None))) for name in fields})


def texts_of(*names: str) -> Callable[[Struct], list[str]]:
    """Return the texts that a call embeds: those of its arguments of these names."""

    def texts(request: Struct) -> list[str]:
        return [text for name in names if (text := getattr(request, name))]

    return texts


def stored(value: Any) -> Any:
    """Return a value as a column holds it: a list or an object as JSON text."""
    return json_text(value) if isinstance(value, dict | list) else value


def not_found(kind: str, key: str) -> Fault:
    """Return the fault for an unknown id, for example `Memory 'mem_x' not found`."""
    return Fault("not_found", f"{kind} '{key}' not found")

"""Helpers that all tools of `brain` share: databases and their index spaces, ids, times and JSON columns, their
settings, the words of their categories and statuses, the keys that a reading tool returns, and immutable memories."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, Struct

from handlers.brain.schemas import DATABASE_NAMES, Category, EntityType, Memory, NoteType
from kernel.calls.settings import Setting, fraction, names, setting
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.core.times import end_of_day, utc_time
from kernel.search import index
from kernel.store.transaction import Tx

R = TypeVar("R", bound=Struct)
ID_LENGTH = 21  # characters after the prefix, as in the ids of the original
NO_PREFIX = "bare"  # label of a fault whose message is returned without `Error: `
_Key = Annotated[str, Meta(min_length=1, max_length=64)]
Fields = Annotated[
    Annotated[list[_Key], Meta(max_length=64)] | None,
    Meta(description="Only these keys of each row, and its id; every key if left out"),
]
ALWAYS_KEPT = ("id",)
_WORDS: Mapping[str, tuple[str, ...]] = {
    "category": get_args(Category),
    "status": ("active", "superseded", "archived"),
    "type": get_args(EntityType),
    "note_type": get_args(NoteType),
}


class _Metadata(Struct):
    immutable: Any = None


DATABASES = "QUIPU_BRAIN_DATABASES"
HALF_LIFE_DAYS = "QUIPU_BRAIN_HALF_LIFE_DAYS"
DUPLICATE_DISTANCE = "QUIPU_BRAIN_DUPLICATE_DISTANCE"
_SPACE = "brain:"
_KINDS = {"mem": "memories", "ent": "entities", "note": "notes", "lnk": "links"}  # by the beginnings of ids
_NAME = regex(r"[a-z0-9][a-z0-9_-]{0,63}")


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
    return f"{_SPACE}{db}"


def new_id(tx: Tx, prefix: str) -> str:
    """Return a fresh id in the contract's form, `mem_` and 21 characters; ids sort by time."""
    rest = tx.new_id(prefix).removeprefix(f"{prefix}_")
    return f"{prefix}_{rest[-ID_LENGTH:]}"


def json_text(value: Any) -> str | None:
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
        raise Fault(
            "invalid", f"Invalid arguments: {name} is no time or date, such as 2026-01-31 or 2026-01-31T08:00:00Z"
        )
    return time


def parse_end(name: str, value: str | None) -> str | None:
    """Return the end of a validity in the format of the rows; a date stands for the end of that day in UTC."""
    time = parse_time(name, value)
    return time and value and end_of_day(value, time)


def embedding(tx: Tx) -> dict[str, Any]:
    """Return the columns of a row that is indexed now, by name."""
    return dict(zip(("has_embedding", "embedding_model"), embedding_columns(tx), strict=True))


def embedding_columns(tx: Tx) -> tuple[int, str | None]:
    model = tx.embedding_model if index.has_model(tx) else None
    return (1, model[0]) if model else (0, None)


def new_row(kind: type[R], request: Struct | None = None, **values: Any) -> R:
    """Return a row of the values, else of the fields of the request, lists and objects as JSON; None for the rest."""
    fields = kind.__struct_fields__
    return kind(**{name: stored(values.get(name, getattr(request, name, None))) for name in fields})


def texts_of(*names: str) -> Callable[[Struct], list[str]]:
    """Return the texts that a call embeds: those of its arguments of these names."""

    def texts(request: Struct) -> list[str]:
        return [text for name in names if (text := getattr(request, name))]

    return texts


def stored(value: Any) -> Any:
    return json_text(value) if isinstance(value, dict | list) else value


def databases_with(tx: Tx, statement: str, key: str) -> list[str]:
    """Return the databases with a row of this id, which the statement reads."""
    return [name for name in databases(tx) if tx.rows(statement, db=name, id=key)]


def not_found(kind: str, key: str, places: Sequence[str] = ()) -> Fault:
    """Return the refusal of an unknown id, with the databases that have it, the kind of ids that begin so, or the id
    within that of a recall.
    """
    message = f"{kind} '{key}' not found"
    place, _, id_ = key.partition("/")
    prefix, underscore, _ = key.partition("_")
    other = _KINDS.get(prefix) if underscore else None
    if place.startswith(_SPACE) and id_:
        message += f": its id is {id_}, its db {place.removeprefix(_SPACE)}"
    elif places:
        message += f"; it is in {', '.join(places)}"
    elif other and other[:3] not in kind.lower():
        message += f"; ids of {other} begin with {prefix}_"
    return Fault("not_found", message)


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


def check_word(name: str, word: str | None, current: str | None = None) -> None:
    """Raises Fault("invalid") for an unknown category, status or type, unless it is that of the row already."""
    if word not in (None, current, *_WORDS[name]):
        raise Fault("invalid", f"Invalid arguments: {name} is one of {', '.join(_WORDS[name])}")


def check_metadata(metadata: Mapping[str, Any] | None) -> None:
    """Raises Fault("invalid") for an `immutable` that is neither true nor false and so would not protect."""
    if metadata is not None and not isinstance(metadata.get("immutable", False), bool):
        raise Fault("invalid", "Invalid arguments: metadata.immutable is true or false")


def lock_of(row: Memory) -> str:
    """Return the reason why a memory must not be changed; empty for none."""
    if row.source == "founding":
        return "it is a founding memory"
    if row.category == "hard_constraint":
        return "it is a hard constraint"
    if row.category == "value" and row.subcategory == "core":
        return "it is a core value"
    return "its metadata say `immutable: true`" if is_marked_immutable(row.metadata) else ""


def is_marked_immutable(metadata: str | None) -> bool:
    try:
        return metadata is not None and msgspec.json.decode(metadata, type=_Metadata).immutable is True
    except msgspec.DecodeError:
        return False


def check_mutable(row: Memory, verb: str) -> None:
    """Raises Fault("blocked") for an immutable memory; `verb` names the attempted change in the message."""
    if not lock_of(row):
        return
    if verb == "correct" and row.source == "founding":
        raise Fault("blocked", "Cannot correct founding memories. These are immutable.")
    raise Fault(
        "blocked", f"Cannot {verb} immutable memory '{row.id}'. Founding values and hard constraints are permanent."
    )


def database_names(value: str) -> tuple[str, ...]:
    """Return the database names without duplicates; raises ValueError for an invalid name."""
    database_names = tuple(dict.fromkeys(names(value)))
    if not all(_NAME.fullmatch(name) for name in database_names):
        raise ValueError("names of lower-case letters, digits, - and _, separated by commas")
    return database_names


SETTINGS = (
    Setting(
        DATABASES, DATABASE_NAMES, database_names, "the databases of brain, separated by commas", lists=("db", "dbs")
    ),
    Setting(HALF_LIFE_DAYS, 30.0, fraction(0.001, 100_000), "days after which an unused memory counts half"),
    Setting(DUPLICATE_DISTANCE, 0.9, fraction(0, 2), "L2 distance below which smart_save_memory asks first"),
)

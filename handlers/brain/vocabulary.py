"""Words that `brain` knows: a row with another category, status or type would be lost to every search."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from handlers.brain.schemas import Category, EntityType, NoteType
from kernel.core.errors import Fault

STATUSES = ("active", "superseded", "archived")
CATEGORIES: tuple[str, ...] = get_args(Category)
_WORDS: Mapping[str, tuple[str, ...]] = {
    "category": CATEGORIES,
    "status": STATUSES,
    "type": get_args(EntityType),
    "note_type": get_args(NoteType),
}


def check_category(word: str | None, current: str | None = None) -> None:
    """Raises Fault("invalid") for an unknown category, unless it is that of the memory already."""
    if word not in (None, current, *CATEGORIES):
        raise _unknown("category", CATEGORIES)


def check_status(word: str | None, current: str | None = None) -> None:
    """Raises Fault("invalid") for an unknown status, unless it is that of the memory already."""
    if word not in (None, current, *STATUSES):
        raise _unknown("status", STATUSES)


def check_filters(rows: Sequence[object], **words: str | None) -> None:
    """Raises Fault("invalid") for an unknown word without any row; imported rows may have others."""
    for name, word in words.items():
        if not rows and word not in (None, *_WORDS[name]):
            raise _unknown(name, _WORDS[name])


def check_metadata(metadata: Mapping[str, Any] | None) -> None:
    """Raises Fault("invalid") for an `immutable` that is neither true nor false and so would not protect."""
    if metadata is not None and not isinstance(metadata.get("immutable", False), bool):
        raise Fault("invalid", "Invalid arguments: metadata.immutable is true or false")


def _unknown(name: str, words: Sequence[str]) -> Fault:
    return Fault("invalid", f"Invalid arguments: {name} is one of {', '.join(words)}")

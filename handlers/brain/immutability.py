"""Immutable memories, and the fault for changing them (seed 003, update_memory)."""

from typing import Any

import msgspec
from msgspec import Struct

from handlers.brain.schemas import Memory
from kernel.errors import Fault


class _Metadata(Struct):
    immutable: Any = None


def is_immutable(row: Memory) -> bool:
    """Whether a memory is founding, a hard constraint, a core value, or has `immutable: true` in its metadata."""
    if row.source == "founding" or row.category == "hard_constraint":
        return True
    if row.category == "value" and row.subcategory == "core":
        return True
    return is_marked_immutable(row.metadata)


def is_marked_immutable(metadata: str | None) -> bool:
    """Whether a metadata column contains `immutable: true`."""
    try:
        return metadata is not None and msgspec.json.decode(metadata, type=_Metadata).immutable is True
    except msgspec.DecodeError:
        return False


def check_mutable(row: Memory, verb: str) -> None:
    """Raises Fault("blocked") for an immutable memory; `verb` names the attempted change in the message."""
    if not is_immutable(row):
        return
    if verb == "correct" and row.source == "founding":
        raise Fault("blocked", "Cannot correct founding memories. These are immutable.")
    raise Fault(
        "blocked",
        f"Cannot {verb} immutable memory '{row.id}'. Founding values and hard constraints are permanent.",
    )

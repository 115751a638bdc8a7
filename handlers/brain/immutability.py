"""Immutable memories, and the fault for changing them (seed 003, update_memory)."""

from typing import Any

import msgspec
from msgspec import Struct

from handlers.brain.schemas import Memory
from kernel.core.errors import Fault


class _Metadata(Struct):
    immutable: Any = None


def lock_of(row: Memory) -> str:
    """Return the reason why a memory must not be changed; empty for none."""
    if row.source == "founding":
        return "it is a founding memory"
    if row.category == "hard_constraint":
        return "it is a hard constraint"
    if row.category == "value" and row.subcategory == "core":
        return "it is a core value"
    return "its metadata say `immutable: true`" if is_marked_immutable(row.metadata) else ""


def is_immutable(row: Memory) -> bool:
    """Return whether a memory is founding, a hard constraint, a core value, or has `immutable: true` in its
    metadata.
    """
    return bool(lock_of(row))


def is_marked_immutable(metadata: str | None) -> bool:
    """Return whether a metadata column contains `immutable: true`."""
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
        "blocked", f"Cannot {verb} immutable memory '{row.id}'. Founding values and hard constraints are permanent."
    )

"""How a person edits and forgets an entry of `scopes`: a new version, and its deactivation."""

from handlers.scopes import entries
from handlers.scopes.entry_kinds import KINDS
from kernel.store.curation import Curation, ToolCall
from kernel.store.transaction import Tx


def curate(tx: Tx, space: str, key: str) -> Curation | None:
    """The content of an active entry, or the description of a tool."""
    kind = next((kind for kind in KINDS.values() if kind.space == space), None)
    if kind is None:
        return None
    row, current = entries.get(tx, kind, key)
    if not row.is_active:
        return None
    field = kind.indexed_fields[0]
    text: str | None = getattr(current, field)
    update = {"action": "update", "id": key, "expectedVersion": current.version_num}
    return Curation(
        text or "",
        ToolCall(f"memory_{kind.name}", update, field),
        ToolCall(f"memory_{kind.name}", {"action": "deactivate", "id": key}),
    )

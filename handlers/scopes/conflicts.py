"""The tool memory_conflict (seed 000): conflicts between versions that were written within five seconds."""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict

from handlers.scopes import errors
from handlers.scopes.entry_kinds import EntryType
from handlers.scopes.field_types import Id, Label, Limit, NonEmptyText, Offset, validate
from handlers.scopes.results import Answer, Conflict, Page, read_page, row_factory
from kernel.calls.tools import Hints, Tool, write
from kernel.store.transaction import Tx

_conflict_row = row_factory(Conflict, "resolved", bool)


class ListConflicts(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    entry_type: Annotated[EntryType | None, Meta(description="Only conflicts of entries of this type")] = None
    resolved: Annotated[bool | None, Meta(description="Resolved ones instead of unresolved ones")] = False
    limit: Limit = 20
    offset: Offset = 0


class ResolveConflict(Struct, tag="resolve", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """The conflict to mark as resolved; its versions stay, no longer marked as in conflict."""

    id: Annotated[Id, Meta(description="Conflict ID")]
    resolution: Annotated[NonEmptyText, Meta(description="How it was resolved")]
    resolved_by: Annotated[Label | None, Meta(description="Who resolved it")] = None


def memory_conflict(tx: Tx, request: ListConflicts | ResolveConflict) -> Answer | Page:
    """Manage version conflicts."""
    validate(request)
    if isinstance(request, ListConflicts):
        filters = {"resolved": bool(request.resolved), "entry_type": request.entry_type}
        rows, count = "scopes.conflicts.list", "scopes.conflicts.count"
        conflicts, totals = read_page(tx, rows, count, _conflict_row, request, **filters)
        return Page(conflicts=conflicts, meta=totals)
    conflict = tx.one("scopes.conflicts.resolve", _conflict_row, now=tx.now, **asdict(request))
    if conflict is None:
        raise errors.not_found("Conflict", request.id)
    tx.run("scopes.conflicts.clear_flag", version_id=conflict.version_b_id)
    tx.add_target(("scopes:conflicts", request.id, "resolved"))  # without a target an undo compares the whole index
    return Answer(True, conflict=conflict)


TOOLS: tuple[Tool, ...] = (
    write(memory_conflict, Hints("Conflicts"), read_arms=(ListConflicts,), kept_arms=(ResolveConflict,)),
)

"""The tool memory_relation (seed 000): links between entries."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from handlers.scopes import errors
from handlers.scopes.entries import unknown
from handlers.scopes.entry_kinds import KINDS
from handlers.scopes.field_types import Id, Label, Limit, Offset, validate
from handlers.scopes.inheritance import unknown_scope
from handlers.scopes.results import Answer, Page, Relation, dumps, read_page
from kernel.calls.tools import Hints, Tool, write
from kernel.core.errors import Fault
from kernel.store import history
from kernel.store.transaction import Tx

RELATION_SPACE = "scopes:relations"
# The types of rows that a tag or a relation can refer to: the three kinds of entries, and projects.
TargetType = Literal["tool", "guideline", "knowledge", "project"]
TARGET_LABELS: Mapping[str, str] = {name: kind.full_label for name, kind in KINDS.items()} | {"project": "Project"}
RelationType = Literal["applies_to", "depends_on", "conflicts_with", "related_to"]
_KEY_FIELDS = ("source_type", "source_id", "target_type", "target_id", "relation_type")
_KEY_REQUIRED = "either id or all of sourceType, sourceId, targetType, targetId and relationType are required"
SourceType = Annotated[TargetType, Meta(description="What the source is; delete takes id or all five fields")]
SourceId = Annotated[Id, Meta(description="ID of the source")]
EndType = Annotated[TargetType, Meta(description="What the target is")]
EndId = Annotated[Id, Meta(description="ID of the target")]
LinkType = Annotated[RelationType, Meta(description="How the source stands to the target")]


class CreateRelation(Struct, tag="create", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    source_type: SourceType
    source_id: SourceId
    target_type: EndType
    target_id: EndId
    relation_type: LinkType
    created_by: Annotated[Label | None, Meta(description="Creator identifier")] = None


class _Ends(Struct, tag_field="action", forbid_unknown_fields=True, rename="camel"):
    source_type: SourceType | None = None
    source_id: SourceId | None = None
    target_type: EndType | None = None
    target_id: EndId | None = None
    relation_type: LinkType | None = None


class ListRelations(_Ends, tag="list"):
    """Filters of the list; a link must match all that are given."""

    limit: Limit = 20
    offset: Offset = 0


class DeleteRelation(_Ends, tag="delete"):
    needs: ClassVar[str] = "id, or all five fields"

    id: Annotated[Id | None, Meta(description="Relation to delete; or give all five fields")] = None


def memory_relation(tx: Tx, request: CreateRelation | ListRelations | DeleteRelation) -> Answer | Page:
    """Create explicit links between entries."""
    validate(request)
    if isinstance(request, CreateRelation):
        check_target(tx, request.source_type, request.source_id, "sourceId")
        check_target(tx, request.target_type, request.target_id, "targetId")
        return Answer(True, relation=_relate(tx, request))
    if isinstance(request, DeleteRelation):
        _delete(tx, request)
        return Answer(True)
    return _list(tx, request)


def check_target(tx: Tx, kind: TargetType, identifier: str, field: str) -> None:
    """Raises a Fault for a row that does not exist; `field` is the argument that holds the id."""
    if not target_exists(tx, kind, identifier):
        raise _unknown(tx, kind, identifier, field)


def target_exists(tx: Tx, kind: str, identifier: str) -> bool:
    return bool(tx.one("scopes.relations.target_exists", int, kind=kind, id=identifier))


def check_known_target(tx: Tx, kind: TargetType | None, identifier: str, field: str) -> None:
    """Raises a Fault for a row that does not exist and has no relations; None stands for any kind of row.

    An imported database may have relations of rows that were not in it, which stay readable.
    """
    if not tx.one("scopes.relations.target_known", int, kind=kind, id=identifier):
        raise errors.not_found("Entry", identifier, field) if kind is None else _unknown(tx, kind, identifier, field)


def _unknown(tx: Tx, kind: TargetType, identifier: str, field: str) -> Fault:
    return (
        unknown_scope(tx, kind, identifier, field) if kind == "project" else unknown(tx, KINDS[kind], identifier, field)
    )


def _relate(tx: Tx, request: CreateRelation) -> Relation:
    ends, created_by = _key_of(request), request.created_by
    row_columns = {"id": tx.new_id("rel"), "created_at": tx.now, "created_by": created_by}
    new_relation = tx.one("scopes.relations.add", Relation, **row_columns, **ends)
    relation = new_relation or tx.one("scopes.relations.get", Relation, **ends)
    if relation is None:
        raise errors.not_found("Relation", request.source_id, "sourceId")
    return relation


def _list(tx: Tx, request: ListRelations) -> Page:
    if request.source_id is not None:
        check_known_target(tx, request.source_type, request.source_id, "sourceId")
    if request.target_id is not None:
        check_known_target(tx, request.target_type, request.target_id, "targetId")
    filters = _key_of(request)
    if request.source_id is not None:
        rows, count = "scopes.relations.from_source", "scopes.relations.count_from_source"
    elif request.target_id is not None:
        rows, count = "scopes.relations.to_target", "scopes.relations.count_to_target"
    else:
        rows, count = "scopes.relations.list", "scopes.relations.count_list"
    relations, totals = read_page(tx, rows, count, Relation, request, **filters)
    return Page(relations=relations, meta=totals)


def _delete(tx: Tx, request: DeleteRelation) -> None:
    if request.id is not None:
        deleted_relation = tx.one("scopes.relations.delete", Relation, id=request.id)
        _check_ends(request, deleted_relation)
    else:
        ends = _key_of(request)
        if None in ends.values():
            raise errors.invalid("id", _KEY_REQUIRED)
        deleted_relation = tx.one("scopes.relations.delete_by_ends", Relation, **ends)
    if deleted_relation is None:
        ends = f"{request.source_id} {request.relation_type} {request.target_id}"
        raise errors.not_found("Relation", request.id or ends)
    history.append(tx, RELATION_SPACE, deleted_relation.id, "deleted", before=dumps(deleted_relation))


def _check_ends(request: DeleteRelation, relation: Relation | None) -> None:
    """Raises a Fault for a field beside the id that the relation has otherwise: one of the two is a mistake."""
    for field, wire in zip(request.__struct_fields__, request.__struct_encode_fields__, strict=True):
        argument, own = getattr(request, field), getattr(relation, field, None)
        if relation is not None and argument not in {None, own}:
            raise errors.invalid(wire, f"is not that of {relation.id}, which is {own}", "give id, or all five fields")


def _key_of(request: CreateRelation | ListRelations | DeleteRelation) -> dict[str, str | None]:
    return {name: getattr(request, name) for name in _KEY_FIELDS}


TOOLS: tuple[Tool, ...] = (write(memory_relation, Hints("Relations", destructive=True), read_arms=(ListRelations,)),)

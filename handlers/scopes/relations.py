"""The tool memory_relation (seed 000): links between entries."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from handlers.scopes import errors
from handlers.scopes.field_types import Id, Label, Limit, Offset, page_bounds, validate
from handlers.scopes.results import Done, Relation
from handlers.scopes.targets import TargetType, check_known_target, check_target
from handlers.scopes.totals import Count, count_rows
from kernel.calls.tools import Hints, Tool, write
from kernel.store import history
from kernel.store.transaction import Tx

RELATION_SPACE = "scopes:relations"
RelationType = Literal["applies_to", "depends_on", "conflicts_with", "related_to"]
_KEY_FIELDS = ("source_type", "source_id", "target_type", "target_id", "relation_type")
_KEY_REQUIRED = "either id or all of sourceType, sourceId, targetType, targetId and relationType are required"


SourceType = Annotated[TargetType, Meta(description="What the source is; delete takes id or all five fields")]
SourceId = Annotated[Id, Meta(description="ID of the source")]
EndType = Annotated[TargetType, Meta(description="What the target is")]
EndId = Annotated[Id, Meta(description="ID of the target")]
LinkType = Annotated[RelationType, Meta(description="How the source stands to the target")]


class CreateRelation(Struct, tag="create", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """The link to create."""

    source_type: SourceType
    source_id: SourceId
    target_type: EndType
    target_id: EndId
    relation_type: LinkType
    created_by: Annotated[Label | None, Meta(description="Creator identifier")] = None


class ListRelations(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """Filters of the list; a link must match all that are given."""

    source_type: SourceType | None = None
    source_id: SourceId | None = None
    target_type: EndType | None = None
    target_id: EndId | None = None
    relation_type: LinkType | None = None
    limit: Limit = 20
    offset: Offset = 0


class DeleteRelation(Struct, tag="delete", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """The link to delete, by its id or by all five of its fields."""

    needs: ClassVar[str] = "id, or all five fields"

    id: Annotated[Id | None, Meta(description="Relation to delete; or give all five fields")] = None
    source_type: SourceType | None = None
    source_id: SourceId | None = None
    target_type: EndType | None = None
    target_id: EndId | None = None
    relation_type: LinkType | None = None


class RelationCreated(Struct):
    """Result of create; an existing link is returned unchanged."""

    success: bool
    relation: Relation


class RelationList(Struct):
    """Result of list."""

    relations: list[Relation]
    meta: Count


def memory_relation(
    tx: Tx, request: CreateRelation | ListRelations | DeleteRelation
) -> RelationCreated | RelationList | Done:
    """Create explicit links between entries."""
    validate(request)
    if isinstance(request, CreateRelation):
        check_target(tx, request.source_type, request.source_id, "sourceId")
        check_target(tx, request.target_type, request.target_id, "targetId")
        return RelationCreated(True, relate(tx, _key_of(request), request.created_by))
    if isinstance(request, DeleteRelation):
        return Done(_delete(tx, request))
    return _list(tx, request)


def relate(tx: Tx, ends: dict[str, str | None], created_by: str | None) -> Relation:
    """Return the link between two ends, created if there is none."""
    created = tx.one("scopes.relations.add", Relation, id=tx.new_id("rel"), now=tx.now, created_by=created_by, **ends)
    found = created or tx.one("scopes.relations.get", Relation, **ends)
    if found is None:
        raise errors.not_found("Relation", str(ends["source_id"]), "sourceId")
    return found


def _list(tx: Tx, request: ListRelations) -> RelationList:
    if request.source_id is not None:
        check_known_target(tx, request.source_type, request.source_id, "sourceId")
    if request.target_id is not None:
        check_known_target(tx, request.target_type, request.target_id, "targetId")
    filters, page = _key_of(request), page_bounds(request.limit, request.offset)
    if request.source_id is not None:
        rows, count = "scopes.relations.from_source", "scopes.relations.count_from_source"
    elif request.target_id is not None:
        rows, count = "scopes.relations.to_target", "scopes.relations.count_to_target"
    else:
        rows, count = "scopes.relations.list", "scopes.relations.count_list"
        del filters["source_id"], filters["target_id"]
    found = tx.all(rows, Relation, **filters, **page)
    return RelationList(found, count_rows(tx, count, len(found), page, **filters))


def _delete(tx: Tx, request: DeleteRelation) -> bool:
    if request.id is not None:
        deleted = tx.one("scopes.relations.delete", Relation, id=request.id)
    else:
        ends = _key_of(request)
        if None in ends.values():
            raise errors.invalid("id", _KEY_REQUIRED)
        deleted = tx.one("scopes.relations.delete_by_ends", Relation, **ends)
    if deleted is None:
        return False
    history.append(tx, RELATION_SPACE, deleted.id, "deleted", before=msgspec.json.encode(deleted).decode())
    return True


def _key_of(request: CreateRelation | ListRelations | DeleteRelation) -> dict[str, str | None]:
    return {name: getattr(request, name) for name in _KEY_FIELDS}


TOOLS: tuple[Tool, ...] = (
    write(
        memory_relation,
        Hints("Relations", destructive=True),
        permission={"create": "write", "list": "read", "delete": "write"},
        read_arms=(ListRelations,),
    ),
)

"""The link tools of `brain` (seed 003, Link Tools): create, get, delete."""

from typing import Annotated, Any, NamedTuple, get_args

from msgspec import Meta, Struct
from msgspec.structs import asdict, astuple, replace

from handlers.brain.base import NO_PREFIX, R, databases, databases_with, new_id, new_row, not_found, space
from handlers.brain.schemas import Database, Fraction, Id, JsonObject, Link, LinkableKind, ShortText
from kernel.calls.tools import Hints, Tool, read, write
from kernel.core.errors import Fault
from kernel.store import history
from kernel.store.transaction import Tx


class CreateLink(Struct, forbid_unknown_fields=True):
    db: Database
    source_type: Annotated[LinkableKind, Meta(description="What the source is")]
    source_id: Annotated[Id, Meta(description="Id of the source")]
    target_type: Annotated[LinkableKind, Meta(description="What the target is")]
    target_id: Annotated[Id, Meta(description="Id of the target")]
    relationship: Annotated[
        ShortText, Meta(description="relates_to, supersedes, contradicts, depends_on, part_of or another word")
    ]
    strength: Annotated[Fraction, Meta(description="How strong it is, 0 to 1")] = 1.0
    metadata: Annotated[JsonObject | None, Meta(description="Any JSON")] = None


class GetLinks(Struct, forbid_unknown_fields=True):
    """Which links to get."""

    db: Database
    source_id: Annotated[Id | None, Meta(description="Only from this source")] = None
    target_id: Annotated[Id | None, Meta(description="Only to this target")] = None
    relationship: Annotated[ShortText | None, Meta(description="Only this relationship")] = None


class DeleteLink(Struct, forbid_unknown_fields=True):
    db: Database
    id: Annotated[Id, Meta(description="Id of the link")]


# The fields that name a row, and its kind.
_REFERENCES = {"project_id": "entity", "entity_id": "entity", "parent_note_id": "note", "source_memory_id": "memory"}


class LinkEnd(NamedTuple):
    kind: str
    id: str


def create_link(tx: Tx, request: CreateLink) -> Link:
    """Link two memories or entities, of this database or another."""
    here = space(tx, request.db)
    ends = [(request.source_type, request.source_id), (request.target_type, request.target_id)]
    for end in tx.all("brain.links.missing_ends", LinkEnd, ends=ends, databases=databases(tx)):
        raise not_found(end.kind.capitalize(), end.id)
    row = new_row(Link, request, id=new_id(tx, "lnk"), bidirectional=0, created_at=tx.now)
    if not tx.all("brain.links.insert", str, rows=[(request.db, *astuple(row))]):
        raise Fault("conflict", "This exact link already exists", NO_PREFIX)
    history.append(tx, here, row.id, "created", after=_link_text(row))
    return row


def check_references(tx: Tx, request: Struct) -> None:
    """Raise Fault("not_found") if a field of a request holds the id of a row that is in no database.

    A `project_id` without the prefix of an entity is the name of a project, as it may be in the original.
    """
    ends = {name: (kind, key) for name, kind in _REFERENCES.items() if (key := getattr(request, name, None))}
    if "project_id" in ends and not ends["project_id"][1].startswith("ent_"):
        del ends["project_id"]
    if not ends:
        return
    for end in tx.all("brain.links.missing_ends", LinkEnd, ends=[*ends.values()], databases=databases(tx)):
        name = next(name for name, pair in ends.items() if pair == end)
        raise Fault(
            "not_found", f"{end.kind.capitalize()} '{end.id}' not found: {name} is the id of a stored {end.kind}"
        )


def checked(tx: Tx, request: Struct, rows: list[R]) -> list[R]:
    """Return the rows of a list; if there are none, raise Fault("not_found") for a filter with the id of no row."""
    if not rows:
        check_references(tx, request)
    return rows


def get_links(tx: Tx, request: GetLinks) -> list[Link]:
    """Get links by source, target or relationship, the newest first."""
    space(tx, request.db)
    if request.source_id is not None:
        rows = tx.all("brain.links.from_source", Link, **asdict(request))
    elif request.target_id is not None:
        rows = tx.all("brain.links.to_target", Link, **asdict(request))
    else:
        rows = tx.all("brain.links.list", Link, **asdict(request))
    for key in () if rows else filter(None, (request.source_id, request.target_id)):
        ends = [(kind, key) for kind in get_args(LinkableKind)]
        if len(tx.all("brain.links.missing_ends", LinkEnd, ends=ends, databases=databases(tx))) == len(ends):
            raise not_found("Memory or entity", key)
    return rows


def delete_link(tx: Tx, request: DeleteLink) -> str:
    """Delete a link; what it linked stays."""
    here = space(tx, request.db)
    row = tx.one("brain.links.delete", Link, db=request.db, id=request.id)
    if row is None:
        raise not_found("Link", request.id, databases_with(tx, "brain.links.get", request.id))
    history.append(tx, here, row.id, "deleted", before=_link_text(row))
    return f"Deleted link '{row.id}'"


def delete_links_of(tx: Tx, db: str, kind: LinkableKind, key: str) -> None:
    """Deletes the links from and to a row, in whichever database they are."""
    tx.run("brain.links.delete_of_row", databases=_databases_of_links(tx, db, kind, key), type=kind, id=key)


def carry_entity_links(tx: Tx, db: str, old: str, new: str) -> None:
    """Gives the successor of a memory its links from and to entities, in whichever database they are; the memory keeps
    them.
    """
    names = _databases_of_links(tx, db, "memory", old)
    pairs = [
        (
            place,
            replace(
                row,
                id=new_id(tx, "lnk"),
                source_id=new if row.source_type == "memory" else row.source_id,
                target_id=new if row.target_type == "memory" else row.target_id,
                created_at=tx.now,
            ),
        )
        for place, row in tx.all("brain.links.with_entities", _placed, databases=names, id=old)
    ]
    tx.run("brain.links.insert", rows=[(place, *astuple(row)) for place, row in pairs])
    for place, row in pairs:
        history.append(tx, f"brain:{place}", row.id, "created", after=_link_text(row), reason=f"Carried on from {old}")


def _placed(db: str, *columns: Any) -> tuple[str, Link]:
    return db, Link(*columns)


def _databases_of_links(tx: Tx, db: str, kind: LinkableKind, key: str) -> list[str]:
    """Return the databases with links of a row: its own and all others, or its own alone if another has a row of the
    same id, which its links may refer to.
    """
    # Ids of the original are unique within a database only.
    names = [name for name in databases(tx) if name != db]
    alone = tx.all("brain.links.missing_ends", LinkEnd, ends=[(kind, key)], databases=names)
    return [db, *(names if alone else [])]


def _link_text(row: Link) -> str:
    return f"{row.source_id} {row.relationship} {row.target_id}"


def ends(key: str, text: str) -> list[str]:
    """Return the ids in the history of a link; nothing for other keys."""
    return [text.partition(" ")[0], text.rpartition(" ")[2]] if key.startswith("lnk_") else []


TOOLS: tuple[Tool, ...] = (
    write(create_link, Hints("Create link"), permission="write"),
    read(get_links, Hints("Get links"), permission="read"),
    write(delete_link, Hints("Delete link", destructive=True), permission="write"),
)

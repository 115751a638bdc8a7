"""batch_embed of `brain` (seed 003), for rows that were saved without a model or with another one."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from handlers.brain.base import embedding_columns, space
from handlers.brain.index_text import entity_source, memory_source, note_source, resource_source, update_index
from handlers.brain.schemas import Database, Entity, Limit, Memory, Note, Resource
from kernel.calls.dialect import IndexSource
from kernel.calls.tools import Hints, Tool, exclusive
from kernel.store.progress import steps
from kernel.store.transaction import Tx

Embeddable = Literal["memory", "entity", "note", "resource"]
Kinds = Annotated[list[Embeddable], Meta(max_length=8)]
KINDS: tuple[Embeddable, ...] = ("memory", "entity", "note", "resource")


class BatchEmbed(Struct, forbid_unknown_fields=True):
    """Which rows to embed."""

    db: Database
    types: Annotated[Kinds | None, Meta(description="memory, entity, note, resource; all if left out")] = None
    limit: Annotated[Limit, Meta(description="Most rows of each type")] = 100


class Embedded(Struct):
    """How many rows of a type have an embedding now, and how many could have none."""

    embedded: int
    errors: int


def batch_embed(tx: Tx, request: BatchEmbed) -> dict[str, Embedded]:
    """Embed what has no embedding of the present model. Whatever is saved is embedded at once, so this is needed only
    for what was saved while no model was configured, or another one.
    """
    here = space(tx, request.db)
    _, model = embedding_columns(tx)
    found: dict[str, Embedded] = {}
    for kind in dict.fromkeys(request.types or KINDS):
        sources = _without_embedding(tx, kind, request, here, model)
        if model is None:
            found[kind] = Embedded(0, len(sources))
            continue
        for source in steps(tx, sources):
            update_index(tx, source)
        _flag_embedded(tx, kind, request.db, [source.key for source in sources], model)
        found[kind] = Embedded(len(sources), 0)
    return found


def _without_embedding(
    tx: Tx, kind: Embeddable, request: BatchEmbed, here: str, model: str | None
) -> list[IndexSource]:
    which = {"db": request.db, "limit": request.limit, "model": model}
    match kind:
        case "memory":
            return [memory_source(here, row) for row in tx.all("brain.vectors.memories", Memory, **which)]
        case "entity":
            return [entity_source(here, row) for row in tx.all("brain.vectors.entities", Entity, **which)]
        case "note":
            return [note_source(here, row) for row in tx.all("brain.vectors.notes", Note, **which)]
        case "resource":
            return [resource_source(here, row) for row in tx.all("brain.vectors.resources", Resource, **which)]


def _flag_embedded(tx: Tx, kind: Embeddable, db: str, ids: list[str], model: str) -> None:
    match kind:
        case "memory":
            tx.run("brain.vectors.flag_memories", db=db, ids=ids, model=model)
        case "entity":
            tx.run("brain.vectors.flag_entities", db=db, ids=ids, model=model)
        case "note":
            tx.run("brain.vectors.flag_notes", db=db, ids=ids, model=model)
        case "resource":
            tx.run("brain.vectors.flag_resources", db=db, ids=ids, model=model)


TOOLS: tuple[Tool, ...] = (
    exclusive(
        batch_embed,
        Hints("Embed what is not", idempotent=True),
        permission="write",
        long=True,
    ),
)

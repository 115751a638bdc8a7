"""batch_embed of `brain` (seed 003), for rows that were saved without a model or with another model."""

from typing import Annotated

from msgspec import Meta, Struct

from handlers.brain.base import embedding_columns, space
from handlers.brain.index_text import KINDS, Indexed, update_index
from handlers.brain.repository import WRITES
from handlers.brain.schemas import Database, Limit
from kernel.calls.tools import Hints, Tool, exclusive
from kernel.store.long_work import steps
from kernel.store.transaction import Tx

Kinds = Annotated[list[Indexed], Meta(max_length=8)]


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
    counts: dict[str, Embedded] = {}
    for name in dict.fromkeys(request.types or KINDS):
        kind = KINDS[name]
        rows = tx.all(kind.not_embedded, kind.row, db=request.db, limit=request.limit, model=model)
        if model is None:
            counts[name] = Embedded(0, len(rows))
            continue
        for row in steps(tx, rows):
            update_index(tx, kind.source(here, row))
        tx.run(WRITES[kind.row].flag_embedded, db=request.db, ids=[row.id for row in rows], model=model)
        counts[name] = Embedded(len(rows), 0)
    return counts


TOOLS: tuple[Tool, ...] = (
    exclusive(batch_embed, Hints("Embed what is not", idempotent=True), permission="write", long=True),
)

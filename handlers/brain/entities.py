"""The entity tools of `brain` (seed 003, Entity Tools): create, get, update, get with everything related, delete."""

from typing import Annotated

from msgspec import Meta, Struct

from handlers.brain import repository
from handlers.brain.base import Fields, embedding, new_id, new_row, space
from handlers.brain.index_text import ACTIVE, join_sentences
from handlers.brain.links import delete_links_of
from handlers.brain.schemas import (
    Database,
    Entity,
    EntityType,
    Id,
    JsonObject,
    Limit,
    LongText,
    Memory,
    Offset,
    ShortText,
    Tags,
    Title,
)
from kernel.calls.tools import Hints, Hooks, Tool, read, write
from kernel.store.transaction import Tx


class CreateEntity(Struct, forbid_unknown_fields=True):
    db: Database
    name: Annotated[Title, Meta(description="What it is called")]
    type: Annotated[EntityType, Meta(description="What kind of thing it is")]
    subtype: Annotated[ShortText | None, Meta(description="Refinement of the type")] = None
    description: Annotated[LongText | None, Meta(description="What it is")] = None
    tags: Annotated[Tags | None, Meta(description="Words to find it by")] = None
    metadata: Annotated[JsonObject | None, Meta(description="Any JSON")] = None


class GetEntities(Struct, forbid_unknown_fields=True):
    """Which entities to get."""

    db: Database
    type: Annotated[ShortText | None, Meta(description="Only this type")] = None
    tags: Annotated[Tags | None, Meta(description="With any of these tags, in whatever case")] = None
    status: Annotated[ShortText | None, Meta(description="Only this status; if left out, active")] = None
    limit: Limit = 50
    offset: Offset = 0
    fields: Fields = None


class UpdateEntity(Struct, forbid_unknown_fields=True):
    """Changes of an entity; omitted fields stay."""

    db: Database
    id: Annotated[Id, Meta(description="Id of the entity")]
    name: Annotated[Title | None, Meta(description="New name")] = None
    description: Annotated[LongText | None, Meta(description="New description")] = None
    tags: Annotated[Tags | None, Meta(description="All tags from now on")] = None
    status: Annotated[
        ShortText | None, Meta(description="active; any other word, such as archived, hides it from search")
    ] = None
    metadata: Annotated[JsonObject | None, Meta(description="All metadata from now on")] = None


class OneEntity(Struct, forbid_unknown_fields=True):
    db: Database
    id: Annotated[Id, Meta(description="Id of the entity")]


class RelatedEntity(Entity, kw_only=True):
    """An entity and how it is linked; with two relationships it stands here twice."""

    relationship: str


class EntityFull(Struct):
    """Answer of get_entity_full, active rows only: memories linked to the entity, memories of the project that are not
    linked to it, and linked entities.
    """

    entity: Entity
    linked_memories: list[Memory]
    scoped_memories: list[Memory]
    related_entities: list[RelatedEntity]


def create_entity(tx: Tx, request: CreateEntity) -> Entity:
    """Create an entity: a project, person, system or the like, that memories and other entities can be linked to."""
    space(tx, request.db)
    columns = {"id": new_id(tx, "ent"), "status": ACTIVE, "mention_count": 0, "created_at": tx.now}
    row = new_row(Entity, request, **columns, **embedding(tx), updated_at=tx.now)
    return repository.create(tx, request.db, row)


def get_entities(tx: Tx, request: GetEntities) -> list[Entity]:
    """Get entities by type, tags or status, the most recently updated first."""
    return repository.read_page(tx, "brain.entities.page", Entity, request, "type", status=request.status or ACTIVE)


def update_entity(tx: Tx, request: UpdateEntity) -> Entity:
    """Change an entity; what is left out stays."""
    space(tx, request.db)
    before = repository.get(tx, Entity, request.db, request.id)
    names = UpdateEntity.__struct_fields__[2:]
    return repository.update(tx, request.db, before, {name: getattr(request, name) for name in names})


def get_entity_full(tx: Tx, request: OneEntity) -> EntityFull:
    """Get an entity with the memories and entities around it."""
    db, key = request.db, request.id
    space(tx, db)
    entity = repository.get(tx, Entity, db, key)
    memories = tx.all("brain.entities.linked", Memory, db=db, id=key)
    ids = {row.id for row in memories}
    in_scope = [row for row in tx.all("brain.entities.scoped", Memory, db=db, id=key) if row.id not in ids]
    rows = tx.rows("brain.entities.related", db=db, id=key)
    related = [RelatedEntity(*columns, relationship=relationship) for relationship, *columns in rows]
    return EntityFull(entity, memories, in_scope, related)


def delete_entity(tx: Tx, request: OneEntity) -> str:
    """Delete an entity and the links that begin or end at it; memories of it stay."""
    space(tx, request.db)
    row = repository.get(tx, Entity, request.db, request.id)
    delete_links_of(tx, request.db, "entity", row.id)
    repository.remove(tx, request.db, row)
    return f"Deleted entity '{row.id}' and its links"


def _created_text(request: CreateEntity) -> list[str]:
    return [join_sentences(request.name, request.description)]


TOOLS: tuple[Tool, ...] = (
    write(create_entity, Hints("Create entity"), permission="write", hooks=Hooks(texts=_created_text)),
    read(get_entities, Hints("Get entities"), permission="read"),
    write(update_entity, Hints("Update entity", destructive=True, idempotent=True), permission="write"),
    read(get_entity_full, Hints("Get entity with everything around it"), permission="read"),
    write(delete_entity, Hints("Delete entity", destructive=True), permission="write"),
)

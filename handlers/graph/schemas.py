"""Request and result types of `graph`; names and descriptions are those of the contract.

Requests ignore unknown fields, as the original does. The limits are no part of the schemas: the handlers check them.
"""

from typing import Annotated

from msgspec import Meta, Struct, field

Name = Annotated[str, Meta(description="The name of the entity")]
EntityType = Annotated[str, Meta(description="The type of the entity")]
Observations = Annotated[list[str], Meta(description="An array of observation contents associated with the entity")]
From = Annotated[str, Meta(description="The name of the entity where the relation starts")]
To = Annotated[str, Meta(description="The name of the entity where the relation ends")]
RelationType = Annotated[str, Meta(description="The type of the relation")]


class NewEntity(Struct):
    """An entity to create."""

    name: Name
    entityType: EntityType
    observations: Observations


class RelationEnds(Struct, frozen=True):
    """A relation to create or to delete."""

    from_: From = field(name="from")
    to: To
    relationType: RelationType


class NewObservations(Struct):
    """Observations to add to an entity."""

    entityName: Annotated[str, Meta(description="The name of the entity to add the observations to")]
    contents: Annotated[list[str], Meta(description="An array of observation contents to add")]


class ObservationDeletion(Struct):
    """Observations to delete from an entity."""

    entityName: Annotated[str, Meta(description="The name of the entity containing the observations")]
    observations: Annotated[list[str], Meta(description="An array of observations to delete")]


class CreateEntities(Struct):
    """The entities to create."""

    entities: Annotated[list[NewEntity], Meta(description="The entities to create")]


class CreateRelations(Struct):
    """The relations to create."""

    relations: Annotated[list[RelationEnds], Meta(description="The relations to create")]


class AddObservations(Struct):
    """What to add to which entities."""

    observations: Annotated[list[NewObservations], Meta(description="What to add to which entities")]


class DeleteEntities(Struct):
    """The entities to delete."""

    entityNames: Annotated[list[str], Meta(description="An array of entity names to delete")]


class DeleteObservations(Struct):
    """What to delete from which entities."""

    deletions: Annotated[list[ObservationDeletion], Meta(description="What to delete from which entities")]


class DeleteRelations(Struct):
    """The relations to delete."""

    relations: Annotated[list[RelationEnds], Meta(description="An array of relations to delete")]


class ReadGraph(Struct):
    """Nothing is needed."""


class SearchNodes(Struct):
    """What to look for."""

    query: Annotated[
        str, Meta(description="The search query to match against entity names, types, and observation content")
    ]


class OpenNodes(Struct):
    """The entities to show."""

    names: Annotated[list[str], Meta(description="An array of entity names to retrieve")]


class Entity(Struct, forbid_unknown_fields=True):
    """An entity of the graph."""

    name: Name
    entityType: EntityType
    observations: Observations


class Relation(Struct, forbid_unknown_fields=True):
    """A relation of the graph."""

    from_: From = field(name="from")
    to: To
    relationType: RelationType


class AddedObservations(Struct, forbid_unknown_fields=True):
    """What was new to an entity."""

    entityName: str
    addedObservations: list[str]


class CreatedEntities(Struct, forbid_unknown_fields=True):
    """The entities whose names were free."""

    entities: list[Entity]


class CreatedRelations(Struct, forbid_unknown_fields=True):
    """The relations that were not there yet."""

    relations: list[Relation]


class ObservationResults(Struct, forbid_unknown_fields=True):
    """What was new, entity by entity."""

    results: list[AddedObservations]


class Deleted(Struct, forbid_unknown_fields=True):
    """Answer of the tools that delete, whether there was something to delete or not."""

    success: bool
    message: str


class Graph(Struct, forbid_unknown_fields=True):
    """Entities, and relations that begin or end at one of them."""

    entities: list[Entity]
    relations: list[Relation]

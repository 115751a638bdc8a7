"""The tools of `graph` that write: entities, their observations, and relations by the names of their ends.

Requests ignore unknown fields, as the original does. The limits are no part of the schemas: the handlers check them.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, field

from handlers.graph.nodes import SPACE, Entity, EntityType, From, Name, Observations, Relation, RelationType, To, fields
from kernel.calls.tools import Hints, Hooks, Tool, write
from kernel.core.errors import Fault
from kernel.core.text import composed, spellings
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

RELATION_SPACE = "graph:relation"  # of the history; relations are not indexed
MAX_ITEMS = 1000
MAX_OBSERVATIONS = 10_000
MAX_NAME = 1000  # characters
_Triple = tuple[str, str, str]  # the ends of a relation and its type


class NewEntity(Struct):
    name: Name
    entityType: EntityType
    observations: Observations


class RelationEnds(Struct, frozen=True):
    from_: From = field(name="from")
    to: To
    relationType: RelationType


class NewObservations(Struct):
    entityName: Annotated[str, Meta(description="The name of the entity to add the observations to")]
    contents: Annotated[list[str], Meta(description="An array of observation contents to add")]


class ObservationDeletion(Struct):
    entityName: Annotated[str, Meta(description="The name of the entity containing the observations")]
    observations: Annotated[list[str], Meta(description="An array of observations to delete")]


class CreateEntities(Struct):
    entities: Annotated[list[NewEntity], Meta(description="The entities to create")]


class CreateRelations(Struct):
    relations: Annotated[list[RelationEnds], Meta(description="The relations to create")]


class AddObservations(Struct):
    """What to add to which entities."""

    observations: Annotated[list[NewObservations], Meta(description="What to add to which entities")]


class DeleteEntities(Struct):
    entityNames: Annotated[list[str], Meta(description="An array of entity names to delete")]


class DeleteObservations(Struct):
    """What to delete from which entities."""

    deletions: Annotated[list[ObservationDeletion], Meta(description="What to delete from which entities")]


class DeleteRelations(Struct):
    relations: Annotated[list[RelationEnds], Meta(description="An array of relations to delete")]


class AddedObservations(Struct, forbid_unknown_fields=True):
    entityName: str
    addedObservations: list[str]


class CreatedEntities(Struct, forbid_unknown_fields=True):
    entities: list[Entity]


class CreatedRelations(Struct, forbid_unknown_fields=True):
    """The relations that were not there yet."""

    relations: list[Relation]


class ObservationResults(Struct, forbid_unknown_fields=True):
    results: list[AddedObservations]


class Deleted(Struct, forbid_unknown_fields=True):
    """Answer of the tools that delete, whether there was something to delete or not."""

    success: bool
    message: str


class _Stored(NamedTuple):
    """An entity and its observations: their numbers by their text, in the order of insertion."""

    seq: int
    name: str
    entity_type: str
    observations: dict[str, int]


def create_entities(tx: Tx, request: CreateEntities) -> CreatedEntities:
    """Create multiple new entities in the knowledge graph."""
    _check_count("entities", len(request.entities))
    _check_observations(text for entity in request.entities for text in entity.observations)
    _check_names(
        (f"entities[{number}].{field}", text)
        for number, entity in enumerate(request.entities)
        for field, text in (("name", entity.name), ("entityType", entity.entityType))
    )
    spelled = _spelling(tx, [entity.name for entity in request.entities])
    entities = _first_of_each_name(
        [NewEntity(spelled(entity.name), entity.entityType, entity.observations) for entity in request.entities]
    )
    rows = [(entity.name, entity.entityType, _text(entity).lower()) for entity in entities]
    numbers = dict(tx.rows("graph.changes.add_entities", rows=rows, now=tx.now))
    new = [entity for entity in entities if entity.name in numbers]
    observations = [(numbers[entity.name], text) for entity in new for text in entity.observations]
    tx.run("graph.changes.add_observations", rows=observations, now=tx.now)
    for entity in new:
        history.append(tx, SPACE, entity.name, "created", after=_text(entity))
        index.put(tx, SPACE, entity.name, _text(entity))
    return CreatedEntities(new)


def create_relations(tx: Tx, request: CreateRelations) -> CreatedRelations:
    """Create multiple new relations between entities in the knowledge graph. Relations should be in active voice."""
    _check_count("relations", len(request.relations))
    _check_names(
        (f"relations[{number}].{field}", text)
        for number, relation in enumerate(request.relations)
        for field, text in (("from", relation.from_), ("to", relation.to), ("relationType", relation.relationType))
    )
    triples = _new_triples(tx, [_ends(relation) for relation in request.relations])
    new = set(tx.rows("graph.changes.add_relations", rows=list(triples), now=tx.now))
    new_triples = [ends for ends in triples if ends in new]
    for text in map(relation_text, new_triples):
        history.append(tx, RELATION_SPACE, text, "created", after=text)
    return CreatedRelations([Relation(*ends) for ends in new_triples])


def add_observations(tx: Tx, request: AddObservations) -> ObservationResults:
    """Add new observations to existing entities in the knowledge graph."""
    _check_count("observations", len(request.observations))
    _check_observations(text for addition in request.observations for text in addition.contents)
    entities = _stored(tx, [addition.entityName for addition in request.observations])
    stored = {entity.seq: {*map(composed, entity.observations)} for entity in entities.values()}
    results = list[AddedObservations]()
    for name, contents in ((addition.entityName, addition.contents) for addition in request.observations):
        if name not in entities:
            raise Fault("not_found", f"Entity with name {name} not found")
        entity = entities[name]
        new = [text for text in _each_once(contents) if composed(text) not in stored[entity.seq]]
        results.append(AddedObservations(name, new))
        stored[entity.seq].update(map(composed, new))
        entity.observations.update(dict.fromkeys(new, 0))
    rows = [(entities[result.entityName].seq, text) for result in results for text in result.addedObservations]
    tx.run("graph.changes.add_observations", rows=rows, now=tx.now)
    for result in results:
        if result.addedObservations:
            name, text = entities[result.entityName].name, "\n".join(result.addedObservations)
            history.append(tx, SPACE, name, "observed", before="", after=text)
    changed = [entities[result.entityName] for result in results if result.addedObservations]
    _index_again(tx, [*{entity.seq: entity for entity in changed}.values()])
    return ObservationResults(results)


def delete_entities(tx: Tx, request: DeleteEntities) -> Deleted:
    """Delete multiple entities and their associated relations from the knowledge graph."""
    _check_count("entityNames", len(request.entityNames))
    entities = {entity.name: entity for entity in _stored(tx, request.entityNames).values()}
    numbers = [entity.seq for entity in entities.values()]
    tx.run("graph.changes.delete_observations_of", entities=numbers)
    tx.run("graph.changes.delete_entities", entities=numbers)
    history.append_deleted(
        tx, SPACE, "deleted", [(entity.name, _stored_text(entity), None) for entity in entities.values()]
    )
    for entity in entities.values():
        index.drop(tx, SPACE, entity.name)
    _note_deleted(tx, tx.rows("graph.changes.delete_relations_at", names=[*entities, *request.entityNames]))
    return Deleted(True, "Entities deleted successfully")


def delete_observations(tx: Tx, request: DeleteObservations) -> Deleted:
    """Delete specific observations from entities in the knowledge graph."""
    _check_count("deletions", len(request.deletions))
    entities = _stored(tx, [deletion.entityName for deletion in request.deletions])
    numbers, entities_by_name = list[int](), dict[str, _Stored]()
    for deletion in request.deletions:
        entity = entities.get(deletion.entityName)
        texts = [text for text in spellings(deletion.observations) if entity and text in entity.observations]
        if entity and texts:
            numbers += [entity.observations.pop(text) for text in texts]
            history.append(tx, SPACE, entity.name, "unobserved", before="\n".join(texts), after="")
            entities_by_name[entity.name] = entity
    tx.run("graph.changes.delete_observations", seqs=numbers)
    _index_again(tx, list(entities_by_name.values()))
    return Deleted(True, "Observations deleted successfully")


def delete_relations(tx: Tx, request: DeleteRelations) -> Deleted:
    """Delete multiple relations from the knowledge graph."""
    _check_count("relations", len(request.relations))
    rows = [row for relation in request.relations for row in _forms(_ends(relation))]
    _note_deleted(tx, tx.rows("graph.changes.delete_relations", rows=rows))
    return Deleted(True, "Relations deleted successfully")


def _spelling(tx: Tx, names: Sequence[str]) -> Callable[[str], str]:
    """Return how a name is written: as the graph has it in any normal form, else as it comes first."""
    forms = spellings(names)
    stored = tx.all("graph.changes.spelled", str, names=forms) if len(forms) > len(set(names)) else []
    first = {composed(name): name for name in reversed(stored)}
    exact = {*stored}
    return lambda name: name if name in exact else first.setdefault(composed(name), name)


def _new_triples(tx: Tx, triples: Sequence[_Triple]) -> list[_Triple]:
    """Return each relation once that the graph has in no normal form, between names as it has them."""
    spelled = _spelling(tx, [name for source, target, _ in triples for name in (source, target)])
    rows = [row for ends in triples for row in _forms(ends)]
    stored = tx.rows("graph.changes.relations", rows=rows) if len(rows) > len(triples) else []
    known = {composed_ends(ends): ends for ends in stored}
    seen = {**known}
    for source, target, kind in triples:
        seen.setdefault(composed_ends((source, target, kind)), (spelled(source), spelled(target), kind))
    return [*seen.values()][len(known) :]


def _stored(tx: Tx, names: Sequence[str]) -> dict[str, _Stored]:
    """Return the entities of these names, each under its own name and those that mean it in another normal form."""

    def numbered_text(entity: int, seq: int, text: str) -> tuple[int, int, str]:
        return entity, seq, text

    entities = [
        _Stored(seq, name, kind, {}) for seq, name, kind in tx.rows("graph.changes.by_names", names=spellings(names))
    ]
    by_number = {entity.seq: entity.observations for entity in entities}
    for entity, seq, text in tx.each("graph.changes.observations", numbered_text, entities=list(by_number)):
        by_number[entity][text] = seq
    by_form = {composed(entity.name): entity for entity in entities}
    exact = {entity.name: entity for entity in entities}
    return {
        name: exact.get(name, by_form[composed(name)]) for name in dict.fromkeys(names) if composed(name) in by_form
    }


def _index_again(tx: Tx, entities: Sequence[_Stored]) -> None:
    tx.run("graph.changes.set_lowered", rows=[(entity.seq, _stored_text(entity).lower()) for entity in entities])
    for entity in entities:
        index.put(tx, SPACE, entity.name, _stored_text(entity))


def erase(tx: Tx, space: str, key: str) -> None:
    """Delete the history of the relations that went with an entity, which names it."""
    for relation in history.deleted_with(tx, space, key, RELATION_SPACE):
        if relation.startswith(f"{key} ") or relation.endswith(f" {key}"):
            history.forget(tx, RELATION_SPACE, relation)


def _note_deleted(tx: Tx, relations: Sequence[_Triple]) -> None:
    for text in map(relation_text, relations):
        history.append(tx, RELATION_SPACE, text, "deleted", before=text)


def _first_of_each_name(entities: Sequence[NewEntity]) -> list[Entity]:
    first = {entity.name: entity for entity in reversed(entities)}
    unique = [first.pop(entity.name) for entity in entities if entity.name in first]
    return [Entity(entity.name, entity.entityType, _each_once(entity.observations)) for entity in unique]


def _each_once(texts: Sequence[str]) -> list[str]:
    """Return the first of the texts that are equal in a normal form."""
    first = dict[str, str]()
    for text in texts:
        first.setdefault(composed(text), text)
    return [*first.values()]


def _texts_to_embed(request: CreateEntities) -> list[str]:
    return [_text(entity) for entity in _first_of_each_name(request.entities[:MAX_ITEMS])]


def _text(entity: Entity) -> str:
    return "\n".join(fields(entity))


def _stored_text(entity: _Stored) -> str:
    return "\n".join((entity.name, entity.entity_type, *entity.observations))


def _ends(relation: RelationEnds) -> _Triple:
    return relation.from_, relation.to, relation.relationType


def _forms(ends: _Triple) -> Iterable[_Triple]:
    source, target, kind = (spellings([name]) for name in ends)
    return product(source, target, kind)


def composed_ends(ends: _Triple) -> _Triple:
    """Return the ends and type of a relation in the form in which equal relations are equal."""
    source, target, kind = map(composed, ends)
    return source, target, kind


def relation_text(ends: _Triple) -> str:
    source, target, kind = ends
    return f"{source} {kind} {target}"


def _check_count(field: str, count: int) -> None:
    if count > MAX_ITEMS:
        raise Fault("invalid", f"{field}: {count} are more than the {MAX_ITEMS} of one call")


def _check_observations(texts: Iterable[str]) -> None:
    if (count := sum(1 for _ in texts)) > MAX_OBSERVATIONS:
        raise Fault("invalid", f"{count} observations are more than the {MAX_OBSERVATIONS} of one call")


def _check_names(names: Iterable[tuple[str, str]]) -> None:
    """Raises a Fault for a name or type that is too long; each comes after its place in the arguments."""
    for place, name in names:
        if len(name) > MAX_NAME:
            raise Fault("invalid", f"{place}: {len(name)} characters are more than the {MAX_NAME} of a name or type")


TOOLS: tuple[Tool, ...] = (
    write(create_entities, Hints("Create Entities"), permission="write", hooks=Hooks(texts=_texts_to_embed)),
    write(create_relations, Hints("Create Relations"), permission="write"),
    write(add_observations, Hints("Add Observations"), permission="write"),
    write(delete_entities, Hints("Delete Entities", destructive=True, idempotent=True), permission="write"),
    write(delete_observations, Hints("Delete Observations", destructive=True, idempotent=True), permission="write"),
    write(delete_relations, Hints("Delete Relations", destructive=True, idempotent=True), permission="write"),
)

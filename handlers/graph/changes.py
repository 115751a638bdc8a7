"""The tools of `graph` that write: entities, their observations, and relations by the names of their ends."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from handlers.graph.nodes import SPACE, fields
from handlers.graph.schemas import (
    AddedObservations,
    AddObservations,
    CreatedEntities,
    CreatedRelations,
    CreateEntities,
    CreateRelations,
    Deleted,
    DeleteEntities,
    DeleteObservations,
    DeleteRelations,
    Entity,
    NewEntity,
    ObservationResults,
    Relation,
    RelationEnds,
)
from kernel.calls.tools import Hints, Hooks, Tool, write
from kernel.core.errors import Fault
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

RELATION_SPACE = "graph:relation"  # of the history; relations are not indexed
MAX_ITEMS = 1000
MAX_OBSERVATIONS = 10_000
MAX_NAME = 1000  # characters


class _Stored(NamedTuple):
    """An entity and its observations: their numbers by their text, in the order of insertion."""

    seq: int
    name: str
    entity_type: str
    observations: dict[str, int]


class _Observation(NamedTuple):
    entity: int
    seq: int
    text: str


def create_entities(tx: Tx, request: CreateEntities) -> CreatedEntities:
    """Create multiple new entities in the knowledge graph."""
    _check_count("entities", len(request.entities))
    _check_observations(text for entity in request.entities for text in entity.observations)
    _check_names(name for entity in request.entities for name in (entity.name, entity.entityType))
    asked = _first_of_each_name(request.entities)
    rows = [(entity.name, entity.entityType, _text(entity).lower()) for entity in asked]
    numbers = dict(tx.all("graph.changes.add_entities", _pair, rows=rows, now=tx.now))
    made = [entity for entity in asked if entity.name in numbers]
    observed = [(numbers[entity.name], text) for entity in made for text in entity.observations]
    tx.run("graph.changes.add_observations", rows=observed, now=tx.now)
    for entity in made:
        history.append(tx, SPACE, entity.name, "created", after=_text(entity))
        index.put(tx, SPACE, entity.name, _text(entity))
    return CreatedEntities(made)


def create_relations(tx: Tx, request: CreateRelations) -> CreatedRelations:
    """Create multiple new relations between entities in the knowledge graph. Relations should be in active voice."""
    _check_count("relations", len(request.relations))
    _check_names(name for one in request.relations for name in (one.from_, one.to, one.relationType))
    asked = dict.fromkeys(map(_ends, request.relations))
    added = set(tx.all("graph.changes.add_relations", _triple, rows=list(asked), now=tx.now))
    made = [ends for ends in asked if ends in added]
    for ends in made:
        history.append(tx, RELATION_SPACE, _relation_text(ends), "created", after=_relation_text(ends))
    return CreatedRelations([Relation(*ends) for ends in made])


def add_observations(tx: Tx, request: AddObservations) -> ObservationResults:
    """Add new observations to existing entities in the knowledge graph."""
    _check_count("observations", len(request.observations))
    _check_observations(text for one in request.observations for text in one.contents)
    stored = _stored(tx, [one.entityName for one in request.observations])
    results = list[AddedObservations]()
    for name, contents in ((one.entityName, one.contents) for one in request.observations):
        if name not in stored:
            raise Fault("not_found", f"Entity with name {name} not found")
        known = stored[name].observations
        results.append(AddedObservations(name, [text for text in dict.fromkeys(contents) if text not in known]))
        known.update(dict.fromkeys(results[-1].addedObservations, 0))
    added = [(stored[one.entityName].seq, text) for one in results for text in one.addedObservations]
    tx.run("graph.changes.add_observations", rows=added, now=tx.now)
    for one in results:
        if one.addedObservations:
            history.append(tx, SPACE, one.entityName, "observed", before="", after="\n".join(one.addedObservations))
    _index_again(tx, [stored[name] for name in {one.entityName: 0 for one in results if one.addedObservations}])
    return ObservationResults(results)


def delete_entities(tx: Tx, request: DeleteEntities) -> Deleted:
    """Delete multiple entities and their associated relations from the knowledge graph."""
    _check_count("entityNames", len(request.entityNames))
    stored = _stored(tx, request.entityNames)
    numbers = [one.seq for one in stored.values()]
    tx.run("graph.changes.delete_observations_of", entities=numbers)
    tx.run("graph.changes.delete_entities", entities=numbers)
    history.append_deleted(tx, SPACE, "deleted", [(one.name, _stored_text(one), None) for one in stored.values()])
    for one in stored.values():
        index.drop(tx, SPACE, one.name)
    _note_deleted(tx, tx.all("graph.changes.delete_relations_at", _triple, names=request.entityNames))
    return Deleted(True, "Entities deleted successfully")


def delete_observations(tx: Tx, request: DeleteObservations) -> Deleted:
    """Delete specific observations from entities in the knowledge graph."""
    _check_count("deletions", len(request.deletions))
    stored = _stored(tx, [one.entityName for one in request.deletions])
    numbers, changed = list[int](), dict[str, _Stored]()
    for deletion in request.deletions:
        one = stored.get(deletion.entityName)
        gone = [text for text in dict.fromkeys(deletion.observations) if one and text in one.observations]
        if one and gone:
            numbers += [one.observations.pop(text) for text in gone]
            history.append(tx, SPACE, one.name, "unobserved", before="\n".join(gone), after="")
            changed[one.name] = one
    tx.run("graph.changes.delete_observations", seqs=numbers)
    _index_again(tx, list(changed.values()))
    return Deleted(True, "Observations deleted successfully")


def delete_relations(tx: Tx, request: DeleteRelations) -> Deleted:
    """Delete multiple relations from the knowledge graph."""
    _check_count("relations", len(request.relations))
    _note_deleted(tx, tx.all("graph.changes.delete_relations", _triple, rows=list(map(_ends, request.relations))))
    return Deleted(True, "Relations deleted successfully")


def _stored(tx: Tx, names: Sequence[str]) -> dict[str, _Stored]:
    def entity(seq: int, name: str, entity_type: str) -> _Stored:
        return _Stored(seq, name, entity_type, {})

    found = tx.all("graph.changes.by_names", entity, names=names)
    by_number = {one.seq: one.observations for one in found}
    for row in tx.each("graph.changes.observations", _Observation, entities=list(by_number)):
        by_number[row.entity][row.text] = row.seq
    return {one.name: one for one in found}


def _index_again(tx: Tx, changed: Sequence[_Stored]) -> None:
    tx.run("graph.changes.set_lowered", rows=[(one.seq, _stored_text(one).lower()) for one in changed])
    for one in changed:
        index.put(tx, SPACE, one.name, _stored_text(one))


def _note_deleted(tx: Tx, relations: Sequence[tuple[str, str, str]]) -> None:
    for ends in relations:
        history.append(tx, RELATION_SPACE, _relation_text(ends), "deleted", before=_relation_text(ends))


def _first_of_each_name(entities: Sequence[NewEntity]) -> list[Entity]:
    """Return each name once, and each observation of it."""
    first = {entity.name: entity for entity in reversed(entities)}
    kept = [first.pop(entity.name) for entity in entities if entity.name in first]
    return [Entity(one.name, one.entityType, list(dict.fromkeys(one.observations))) for one in kept]


def _texts_to_embed(request: CreateEntities) -> list[str]:
    return [_text(entity) for entity in _first_of_each_name(request.entities[:MAX_ITEMS])]


def _text(entity: Entity) -> str:
    return "\n".join(fields(entity))


def _stored_text(one: _Stored) -> str:
    return "\n".join((one.name, one.entity_type, *one.observations))


def _ends(relation: RelationEnds) -> tuple[str, str, str]:
    return relation.from_, relation.to, relation.relationType


def _relation_text(ends: tuple[str, str, str]) -> str:
    source, target, kind = ends
    return f"{source} {kind} {target}"


def _pair(name: str, seq: int) -> tuple[str, int]:
    return name, seq


def _triple(source: str, target: str, kind: str) -> tuple[str, str, str]:
    return source, target, kind


def _check_count(field: str, count: int) -> None:
    if count > MAX_ITEMS:
        raise Fault("invalid", f"{field}: {count} are more than the {MAX_ITEMS} of one call")


def _check_observations(texts: Iterable[str]) -> None:
    if (count := sum(1 for _ in texts)) > MAX_OBSERVATIONS:
        raise Fault("invalid", f"{count} observations are more than the {MAX_OBSERVATIONS} of one call")


def _check_names(names: Iterable[str]) -> None:
    longest = max(map(len, names), default=0)
    if longest > MAX_NAME:
        raise Fault("invalid", f"A name or type has {longest} characters, more than {MAX_NAME}")


TOOLS: tuple[Tool, ...] = (
    write(create_entities, Hints("Create Entities"), permission="write", hooks=Hooks(texts=_texts_to_embed)),
    write(create_relations, Hints("Create Relations"), permission="write"),
    write(add_observations, Hints("Add Observations"), permission="write"),
    write(delete_entities, Hints("Delete Entities", destructive=True, idempotent=True), permission="write"),
    write(delete_observations, Hints("Delete Observations", destructive=True, idempotent=True), permission="write"),
    write(delete_relations, Hints("Delete Relations", destructive=True, idempotent=True), permission="write"),
)

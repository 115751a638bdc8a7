"""The file of the reference memory server, one entity or relation a line: `quipu import` and `quipu export`."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from handlers.graph.changes import MAX_NAME, MAX_OBSERVATIONS, add_observations, create_entities, create_relations
from handlers.graph.nodes import each_entity, each_relation, relations_of, with_names
from handlers.graph.schemas import (
    AddObservations,
    CreateEntities,
    CreateRelations,
    NewEntity,
    NewObservations,
    RelationEnds,
)
from kernel.core.errors import Fault
from kernel.memories.import_records import Imported, Source
from kernel.store.long_work import Steps
from kernel.store.progress import begin_steps, count_step
from kernel.store.transaction import Tx

_MAX_LINE = 64 << 20  # bytes; a file may have any number of lines


class _Entity(Struct, tag_field="type", tag="entity"):
    name: str
    entityType: str
    observations: list[str]


class _Relation(Struct, tag_field="type", tag="relation"):
    from_: str = msgspec.field(name="from")
    to: str
    relationType: str


_Item = _Entity | _Relation
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode = msgspec.json.Decoder(_Item).decode


def import_graph(source: Source) -> Steps[Imported]:
    """Import entities, observations and relations in their order; existing rows stay as they are."""
    torn = list[str]()
    total = sum(1 for _ in _items(source.path, torn))
    if not total:
        raise Fault("invalid", f"{source.path.name} holds no entity and no relation.")
    tx = yield
    begin_steps(tx, total)
    counts = {"entities": 0, "observations": 0, "relations": 0}
    for item in _items(source.path, []):
        tx = yield
        if isinstance(item, _Entity):
            _add_entity(tx, item, counts)
        else:
            ends = RelationEnds(item.from_, item.to, item.relationType)
            counts["relations"] += len(create_relations(tx, CreateRelations([ends])).relations)
        count_step(tx)
    return Imported(counts, torn)


def preview_graph(tx: Tx, source: Source) -> Imported:
    """Count the additions of `import_graph`."""
    torn = list[str]()
    counts = {"entities": 0, "observations": 0, "relations": 0}
    observations: dict[str, set[int]] = {}
    ends: set[tuple[str, str, str]] = set()
    for item in _items(source.path, torn):
        if isinstance(item, _Entity):
            if item.name not in observations:
                entity = next(with_names(tx, [item.name]), None)
                counts["entities"] += entity is None
                observations[item.name] = set(map(hash, entity.observations if entity else ()))
            new = set(map(hash, item.observations)) - observations[item.name]
            counts["observations"] += len(new)
            observations[item.name] |= new
        elif (triple := (item.from_, item.to, item.relationType)) not in ends:
            ends.add(triple)
            here = ((relation.from_, relation.to, relation.relationType) for relation in relations_of(tx, [item.from_]))
            counts["relations"] += triple not in here
    return Imported(counts, torn)


def is_memory_file(path: Path) -> bool:
    """Return whether a file begins as the files of the reference memory server do."""
    try:
        with path.open("rb") as file:
            head = file.readline(_MAX_LINE)
        return isinstance(_decode(head), _Item)
    except (OSError, *_UNREADABLE):
        return False


def export_graph(tx: Tx) -> Iterator[bytes]:
    """Yield the lines of the file, without their ends: entities, then relations."""
    for entity in each_entity(tx):
        yield msgspec.json.encode(_Entity(entity.name, entity.entityType, entity.observations))
    for relation in each_relation(tx):
        yield msgspec.json.encode(_Relation(relation.from_, relation.to, relation.relationType))


def _add_entity(tx: Tx, item: _Entity, counts: dict[str, int]) -> None:
    """Create an entity, or add the observations that it lacks."""
    first, rest = item.observations[:MAX_OBSERVATIONS], item.observations
    entities = create_entities(tx, CreateEntities([NewEntity(item.name, item.entityType, first)])).entities
    counts["entities"] += len(entities)
    counts["observations"] += sum(len(entity.observations) for entity in entities)
    for at in range(MAX_OBSERVATIONS if entities else 0, len(rest), MAX_OBSERVATIONS):
        more = NewObservations(item.name, rest[at : at + MAX_OBSERVATIONS])
        (result,) = add_observations(tx, AddObservations([more])).results
        counts["observations"] += len(result.addedObservations)


def _items(path: Path, torn: list[str]) -> Iterator[_Item]:
    """Yield the items of a file; of a last line that was cut off `torn` gets a remark. Raises Fault("invalid")."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(_MAX_LINE):
                number += 1
                if _is_torn(line):
                    torn.append(f"left out: line {number}, the last one, which was cut off")
                elif not line.isspace():
                    yield _item(line, f"{path.name}, line {number}")
    except OSError as error:
        raise Fault("invalid", f"{path} cannot be read: {error.strerror}.") from None


def _item(line: bytes, place: str) -> _Item:
    try:
        item = _decode(line)
    except _UNREADABLE as error:
        raise Fault("invalid", f"{place}: {error}.") from None
    names = (item.name, item.entityType) if isinstance(item, _Entity) else (item.from_, item.to, item.relationType)
    if max(map(len, names)) > MAX_NAME:
        raise Fault("invalid", f"{place}: a name or type has more than {MAX_NAME} characters.")
    return item


def _is_torn(line: bytes) -> bool:
    """Return whether this is a last line without its end, as a server that was killed leaves it."""
    if line.endswith((b"\n", b"}")):
        return False
    return not line.isspace()

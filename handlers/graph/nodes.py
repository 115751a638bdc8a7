"""The tools of `graph` that read: all of it, by substring, by name."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from handlers.graph.schemas import Entity, Graph, OpenNodes, ReadGraph, Relation, SearchNodes
from kernel.calls.dialect import Concept, IndexSource, Keys
from kernel.calls.tools import Hints, Tool, read
from kernel.core.errors import Fault
from kernel.search import index
from kernel.store.transaction import Tx

SPACE = "graph"
_FALLBACK_ENTITIES = 10
# What the answer has around the texts of each, at least.
_ENTITY_BYTES, _OBSERVATION_BYTES, _RELATION_BYTES = 80, 12, 72
_MAX_FALLBACK_QUERY = 10_000  # characters that are looked up in the index
_texts = msgspec.json.Decoder(list[str]).decode


def read_graph(tx: Tx, request: ReadGraph) -> Graph:
    """Read the entire knowledge graph."""
    allowance = [tx.context.call_limits.answer]
    return Graph(_entities(each_entity(tx), allowance), _relations(each_relation(tx), allowance))


def search_nodes(tx: Tx, request: SearchNodes) -> Graph:
    """Search for nodes in the knowledge graph based on a query."""
    part, allowance = request.query.lower(), [tx.context.call_limits.answer]
    found = _entities(tx.each("graph.nodes.containing", _entity, part=part), allowance)
    if "\n" in part:  # which is between the texts of an entity too
        found = [entity for entity in found if any(part in text.lower() for text in fields(entity))]
    return _with_relations(tx, found or _entities(_search_index(tx, request.query), allowance), allowance)


def open_nodes(tx: Tx, request: OpenNodes) -> Graph:
    """Open specific nodes in the knowledge graph by their names."""
    allowance = [tx.context.call_limits.answer]
    return _with_relations(tx, _entities(with_names(tx, request.names), allowance), allowance)


def sources(tx: Tx) -> Iterator[IndexSource]:
    """Yield the index content of every entity."""
    for entity in each_entity(tx):
        yield _source(entity)


def sources_of(tx: Tx, keys: Keys) -> Iterator[IndexSource]:
    """Yield the index content of some entities."""
    names = [key for space, key in keys if space == SPACE]
    yield from map(_source, with_names(tx, names))


def _source(entity: Entity) -> IndexSource:
    texts = fields(entity)
    return IndexSource(
        SPACE, entity.name, "", "\n".join(texts), concept=Concept(entity.name, body="\n".join(texts[1:]))
    )


def each_entity(tx: Tx) -> Iterator[Entity]:
    """Return every entity, in the order of insertion."""
    return tx.each("graph.nodes.all_entities", _entity)


def with_names(tx: Tx, names: Sequence[str]) -> Iterator[Entity]:
    """Return the entities of these names."""
    return tx.each("graph.nodes.by_names", _entity, names=names)


def relations_of(tx: Tx, names: Sequence[str]) -> Iterator[Relation]:
    """Return the relations with one of these names at an end."""
    return tx.each("graph.nodes.relations_at", Relation, names=names)


def each_relation(tx: Tx) -> Iterator[Relation]:
    """Return every relation, in the order of insertion."""
    return tx.each("graph.nodes.all_relations", Relation)


def _entity(name: str, kind: str, observations: str) -> Entity:
    return Entity(name, kind, _texts(observations))


def fields(entity: Entity) -> tuple[str, ...]:
    """Return the texts of an entity that are searched."""
    return (entity.name, entity.entityType, *entity.observations)


def _entities(found: Iterable[Entity], left: list[int]) -> list[Entity]:
    """Return the entities as long as they fit into what is left of an answer."""
    kept = list[Entity]()
    for entity in found:
        _take(left, _ENTITY_BYTES + _OBSERVATION_BYTES * len(entity.observations), fields(entity))
        kept.append(entity)
    return kept


def _relations(found: Iterable[Relation], left: list[int]) -> list[Relation]:
    """Return the relations as long as they fit into what is left of an answer."""
    kept = list[Relation]()
    for relation in found:
        _take(left, _RELATION_BYTES, (relation.from_, relation.to, relation.relationType))
        kept.append(relation)
    return kept


def _take(left: list[int], fixed: int, texts: Iterable[str]) -> None:
    """Raises Fault("invalid") for what does not fit, before more is read."""
    left[0] -= fixed + sum(map(len, texts))
    if left[0] < 0:
        raise Fault("invalid", "The graph is too large for one answer, ask for less with search_nodes or open_nodes.")


def _with_relations(tx: Tx, entities: list[Entity], allowance: list[int]) -> Graph:
    names = [entity.name for entity in entities]
    return Graph(entities, _relations(relations_of(tx, names), allowance))


def _search_index(tx: Tx, query: str) -> list[Entity]:
    """Return the entities that fit best by words and meaning, best first."""
    query = query[:_MAX_FALLBACK_QUERY]
    found = index.find(tx, query, within=[(SPACE, "")])
    scored = index.rerank(tx, query, found, index.Weights()).fused.scored(_FALLBACK_ENTITIES)
    documents = index.documents(tx, [one.hit.doc for one in scored])
    names = [documents[one.hit.doc].key for one in scored if one.hit.doc in documents]
    by_name = {entity.name: entity for entity in with_names(tx, names)}
    return [by_name[name] for name in names if name in by_name]


TOOLS: tuple[Tool, ...] = (
    read(read_graph, Hints("Read Graph"), permission="read"),
    read(search_nodes, Hints("Search Nodes"), permission="read"),
    read(open_nodes, Hints("Open Nodes"), permission="read"),
)

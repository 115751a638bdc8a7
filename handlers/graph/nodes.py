"""The tools of `graph` that read: all of it, by substring, by name; and how a person forgets an entity."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from kernel.calls.dialect import Concept, IndexSource, Keys
from kernel.calls.tools import Hints, Tool, read
from kernel.core.errors import Fault
from kernel.core.text import spellings
from kernel.memories.curation import MOST_LINKS, Curation, Neighbour, ToolCall
from kernel.search import index
from kernel.store.transaction import Tx

SPACE = "graph"
_FALLBACK_ENTITIES = 10
# The least size of the JSON around the texts of each.
_ENTITY_BYTES, _OBSERVATION_BYTES, _RELATION_BYTES = 80, 12, 72
_MOST_IN_SQL = 1000  # characters; instr() takes the time of the query times that of the text
_MAX_FALLBACK_QUERY = 10_000  # characters that are looked up in the index
_texts = msgspec.json.Decoder(list[str]).decode

# Names and descriptions are those of the contract.
Name = Annotated[str, Meta(description="The name of the entity")]
EntityType = Annotated[str, Meta(description="The type of the entity")]
Observations = Annotated[list[str], Meta(description="An array of observation contents associated with the entity")]
From = Annotated[str, Meta(description="The name of the entity where the relation starts")]
To = Annotated[str, Meta(description="The name of the entity where the relation ends")]
RelationType = Annotated[str, Meta(description="The type of the relation")]


class ReadGraph(Struct):
    """Nothing is needed."""


class SearchNodes(Struct):
    """What to look for."""

    query: Annotated[
        str, Meta(description="The search query to match against entity names, types, and observation content")
    ]


class OpenNodes(Struct):
    names: Annotated[list[str], Meta(description="An array of entity names to retrieve")]


class Entity(Struct, forbid_unknown_fields=True):
    name: Name
    entityType: EntityType
    observations: Observations


class Relation(Struct, forbid_unknown_fields=True):
    from_: From = field(name="from")
    to: To
    relationType: RelationType


class Graph(Struct, forbid_unknown_fields=True):
    """Entities, and relations that begin or end at one of them."""

    entities: list[Entity]
    relations: list[Relation]


R = TypeVar("R", Entity, Relation)


def read_graph(tx: Tx, request: ReadGraph) -> Graph:
    """Read the entire knowledge graph."""
    allowance = [tx.context.call_limits.answer]
    return Graph(_fitting(each_entity(tx), allowance), _fitting(each_relation(tx), allowance))


def search_nodes(tx: Tx, request: SearchNodes) -> Graph:
    """Search for nodes in the knowledge graph based on a query."""
    parts, allowance = spellings([request.query.lower()]), [tx.context.call_limits.answer]
    forms = dict(zip_longest(("part", "composed", "decomposed"), (part[:_MOST_IN_SQL] for part in parts)))
    rows = tx.each("graph.nodes.containing", _entity, **forms)
    # A line end is between the texts of an entity too.
    if "\n" in request.query or len(request.query) > _MOST_IN_SQL:
        rows = (row for row in rows if any(part in text.lower() for text in fields(row) for part in parts))
    entities = _fitting(rows, allowance)
    return _with_relations(tx, entities or _fitting(_search_index(tx, request.query), allowance), allowance)


def open_nodes(tx: Tx, request: OpenNodes) -> Graph:
    """Open specific nodes in the knowledge graph by their names."""
    allowance = [tx.context.call_limits.answer]
    return _with_relations(tx, _fitting(with_names(tx, spellings(request.names)), allowance), allowance)


def sources(tx: Tx) -> Iterator[IndexSource]:
    return map(_source, each_entity(tx))


def sources_of(tx: Tx, keys: Keys) -> Iterator[IndexSource]:
    return map(_source, with_names(tx, [key for space, key in keys if space == SPACE]))


def _source(entity: Entity) -> IndexSource:
    texts = fields(entity)
    return IndexSource(
        SPACE, entity.name, "", "\n".join(texts), concept=Concept(entity.name, body="\n".join(texts[1:]))
    )


def each_entity(tx: Tx) -> Iterator[Entity]:
    return tx.each("graph.nodes.all_entities", _entity)


def with_names(tx: Tx, names: Sequence[str]) -> Iterator[Entity]:
    return tx.each("graph.nodes.by_names", _entity, names=names)


def relations_of(tx: Tx, names: Sequence[str]) -> Iterator[Relation]:
    return tx.each("graph.nodes.relations_at", Relation, names=names)


def each_relation(tx: Tx) -> Iterator[Relation]:
    return tx.each("graph.nodes.all_relations", Relation)


def _entity(name: str, kind: str, observations: str) -> Entity:
    return Entity(name, kind, _texts(observations))


def fields(entity: Entity) -> tuple[str, ...]:
    return (entity.name, entity.entityType, *entity.observations)


def _fitting(rows: Iterable[R], left: list[int]) -> list[R]:
    """Return the rows, which must fit into the rest of an answer; raises Fault("invalid") before more is read."""
    fitting = list[R]()
    for row in rows:
        if isinstance(row, Entity):
            left[0] -= _ENTITY_BYTES + _OBSERVATION_BYTES * len(row.observations) + sum(map(len, fields(row)))
        else:
            left[0] -= _RELATION_BYTES + len(row.from_) + len(row.to) + len(row.relationType)
        if left[0] < 0:
            raise Fault(
                "invalid", "The graph is too large for one answer, ask for less with search_nodes or open_nodes."
            )
        fitting.append(row)
    return fitting


def _with_relations(tx: Tx, entities: list[Entity], allowance: list[int]) -> Graph:
    names = [entity.name for entity in entities]
    return Graph(entities, _fitting(relations_of(tx, spellings(names)), allowance))


def _search_index(tx: Tx, query: str) -> list[Entity]:
    """Return the entities that may answer by words and meaning, best first."""
    query = query[:_MAX_FALLBACK_QUERY]
    hits = index.find(tx, query, within=[(SPACE, "")])
    ranking = index.rerank(tx, query, hits, index.Weights()).fused.at_least(index.least("weak"))
    best = ranking.scored(_FALLBACK_ENTITIES)
    documents = index.documents(tx, [candidate.hit.doc for candidate in best])
    names = [documents[candidate.hit.doc].key for candidate in best if candidate.hit.doc in documents]
    by_name = {entity.name: entity for entity in with_names(tx, names)}
    return [by_name[name] for name in names if name in by_name]


def compose(text: str, name: str) -> ToolCall:
    entity = {"name": name, "entityType": "note", "observations": [text]}
    return ToolCall("create_entities", {"entities": [entity]})


def curate(tx: Tx, space: str, key: str) -> Curation | None:
    """Return the texts of an entity, with delete_entities; each observation is changed by itself, not as a text."""
    for entity in with_names(tx, [key]):
        forget = ToolCall("delete_entities", {"entityNames": [key]})
        observations = {
            text: ToolCall("delete_observations", {"deletions": [{"entityName": key, "observations": [text]}]})
            for text in entity.observations
        }
        relations = sorted(islice(relations_of(tx, [key]), MOST_LINKS), key=lambda link: link.from_ != key)
        links = [
            Neighbour(link.relationType, link.from_ == key, space, link.to if link.from_ == key else link.from_)
            for link in relations
        ]
        return Curation("\n".join(fields(entity)), None, forget, links, observations=observations)
    return None


TOOLS: tuple[Tool, ...] = (
    read(read_graph, Hints("Read Graph"), permission="read"),
    read(search_nodes, Hints("Search Nodes"), permission="read"),
    read(open_nodes, Hints("Open Nodes"), permission="read"),
)

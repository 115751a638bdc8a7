"""The view of a memory or an entity of `sessions`, and how a person forgets it; no tool changes it."""

from typing import NamedTuple

from handlers.sessions import graph, memories
from kernel.memories.curation import MOST_LINKS, Curation, Neighbour, ToolCall
from kernel.store.transaction import Tx


class _Relation(NamedTuple):
    relation_type: str
    source_id: int
    target_id: int


def compose(text: str, _name: str) -> ToolCall:
    """Return a new memory, in a session that people at terminals share."""
    return ToolCall("remember", {"content": text, "session_id": "terminal", "kind": "note"})


def curate(tx: Tx, space: str, key: str) -> Curation | None:
    """Return the entities of a memory; the relations of an entity, and the memories that mention it."""
    number = int(key) if key.isascii() and key.isdigit() and len(key) < 16 else 0
    if space == memories.SPACE:
        if tx.one("sessions.graph.memory_id", int, id=number) is None:
            return None
        forget = ToolCall("forget_session_memory", {"id": number})
        entities = tx.all("sessions.graph.entities_of_memory", int, memory_id=number, limit=MOST_LINKS)
        return Curation(
            "", None, forget, [Neighbour("tells of", True, graph.ENTITY_SPACE, str(entity)) for entity in entities]
        )
    if space != graph.ENTITY_SPACE or not graph.exists(tx, number):
        return None
    relations = tx.all("sessions.graph.relations_of", _Relation, entity_id=number, limit=MOST_LINKS)
    mentioning = tx.all("sessions.graph.memories_of", int, entity_id=number, limit=MOST_LINKS)
    links = [_neighbour(number, relation) for relation in relations]
    links += [Neighbour("tells of", False, memories.SPACE, str(memory)) for memory in mentioning]
    observations = {
        text: ToolCall("forget_session_observation", {"id": number, "content": text})
        for text in graph.observations_of(tx, number)
    }
    forget = ToolCall("forget_session_entity", {"id": number})
    return Curation("", None, forget, links, observations=observations)


def _neighbour(entity: int, relation: _Relation) -> Neighbour:
    outgoing = relation.source_id == entity
    target = relation.target_id if outgoing else relation.source_id
    return Neighbour(relation.relation_type, outgoing, graph.ENTITY_SPACE, str(target))

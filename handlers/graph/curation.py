"""How a person forgets an entity of `graph` or an observation of it, and the neighbours of the entity."""

from itertools import islice

from handlers.graph.nodes import fields, relations_of, with_names
from kernel.memories.curation import MOST_LINKS, Curation, Neighbour, ToolCall
from kernel.store.transaction import Tx


def compose(text: str, name: str) -> ToolCall:
    """Return a new entity with the text as its observation."""
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
        links = _links(tx, space, key)
        return Curation("\n".join(fields(entity)), None, forget, links, observations=observations)
    return None


def _links(tx: Tx, space: str, key: str) -> list[Neighbour]:
    relations = list(islice(relations_of(tx, [key]), MOST_LINKS))
    outgoing = [Neighbour(link.relationType, True, space, link.to) for link in relations if link.from_ == key]
    incoming = [Neighbour(link.relationType, False, space, link.from_) for link in relations if link.from_ != key]
    return [*outgoing, *incoming]

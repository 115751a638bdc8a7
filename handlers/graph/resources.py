"""The whole graph as the one MCP resource of the contract."""

from handlers.graph.nodes import read_graph
from handlers.graph.replies import indented
from handlers.graph.schemas import ReadGraph
from kernel.calls.resources import Resource, ResourceContents, Resources
from kernel.store.transaction import Tx

URI = "memory://knowledge-graph"
_MEDIA = "application/json"
_GRAPH = Resource(
    URI,
    "knowledge-graph",
    "Knowledge Graph",
    "The full knowledge graph with all entities and relations",
    _MEDIA,
)


def resource_page(tx: Tx, cursor: str | None) -> tuple[list[Resource], str | None]:
    return [_GRAPH], None


def resource_read(tx: Tx, uri: str) -> list[ResourceContents] | None:
    """Return the graph as JSON, or None for another address."""
    if uri != URI:
        return None
    return [ResourceContents(URI, _MEDIA, indented(read_graph(tx, ReadGraph())).decode())]


RESOURCES = Resources(URI, resource_page, resource_read, whole=URI)

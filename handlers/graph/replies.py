"""Answers, errors and the one resource of `graph`, byte for byte those of the contract."""

from typing import Any

import msgspec

from handlers.graph.changes import CreatedEntities, CreatedRelations, Deleted, ObservationResults
from handlers.graph.nodes import ReadGraph, read_graph
from kernel.calls.arguments import error_message
from kernel.calls.resources import Resource, ResourceContents, Resources
from kernel.calls.tools import ArgumentError, Reply, Tool
from kernel.core.errors import Fault
from kernel.core.text import json_bytes
from kernel.store.transaction import Tx

_JSON = "application/json"
_TEXT = "text/plain"
URI = "memory://knowledge-graph"
_GRAPH = Resource(
    URI, "knowledge-graph", "Knowledge Graph", "The full knowledge graph with all entities and relations", _JSON
)


def indented(value: object) -> bytes:
    """Return JSON with two spaces a level, as JavaScript writes it."""
    return msgspec.json.format(json_bytes(value), indent=2)


def reply(tool: Tool, result: Any) -> Reply:
    """Return the result as indented JSON, a list bare; a message as plain text."""
    content = json_bytes(result)
    if isinstance(result, Deleted):
        return Reply(result.message.encode(), _TEXT, None, content)
    return Reply(indented(_shown(result)), _JSON, None, content)


def _shown(result: Any) -> object:
    match result:
        case CreatedEntities():
            return result.entities
        case CreatedRelations():
            return result.relations
        case ObservationResults():
            return result.results
        case _:
            return result


def fail(fault: Fault) -> Reply:
    return Reply(fault.message.encode(), _TEXT, fault.code)


def argument_fault(error: ArgumentError) -> Fault:
    """Return the beginning that clients know, and the first error."""
    what = error_message(error).removeprefix("Invalid arguments: ")
    return Fault(
        "invalid", f"MCP error -32602: Input validation error: Invalid arguments for tool {error.tool.name}: {what}"
    )


def resource_page(tx: Tx, cursor: str | None) -> tuple[list[Resource], str | None]:
    return [_GRAPH], None


def resource_read(tx: Tx, uri: str) -> list[ResourceContents] | None:
    """Return the graph as JSON, or None for another address."""
    if uri != URI:
        return None
    return [ResourceContents(URI, _JSON, indented(read_graph(tx, ReadGraph())).decode())]


RESOURCES = Resources(URI, resource_page, resource_read, whole=URI)

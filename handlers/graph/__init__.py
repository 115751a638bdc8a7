"""Dialect `graph`: the nine tools of the reference memory server, a knowledge graph of entities and relations.

Answers, errors and the one resource are byte for byte those of the contract.
"""

from typing import Any

import msgspec

from handlers.graph.changes import TOOLS as CHANGES
from handlers.graph.changes import CreatedEntities, CreatedRelations, Deleted, ObservationResults, erase
from handlers.graph.memory_file import export_graph, import_graph, is_memory_file, preview_graph
from handlers.graph.nodes import SPACE, ReadGraph, compose, curate, read_graph, sources, sources_of
from handlers.graph.nodes import TOOLS as NODES
from kernel.calls.arguments import error_message
from kernel.calls.dialect import Dialect, Exchange, Memories, Offers
from kernel.calls.tools import ArgumentError, Reply, Resource, ResourceContents, Resources, Tool
from kernel.core.errors import Fault
from kernel.core.text import json_bytes
from kernel.memories.import_records import Export, Import
from kernel.store.transaction import Tx

_JSON = "application/json"
_TEXT = "text/plain"
URI = "memory://knowledge-graph"
_GRAPH = Resource(
    URI, "knowledge-graph", "Knowledge Graph", "The full knowledge graph with all entities and relations", _JSON
)


def indented(value: object) -> bytes:
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
    if uri != URI:
        return None
    return [ResourceContents(URI, _JSON, indented(read_graph(tx, ReadGraph())).decode())]


_FORMAT = "the JSON lines of the reference memory server"
DIALECT = Dialect(
    name=SPACE,
    about="A knowledge graph: entities with observations, and relations between them by name.",
    guide="Call search_nodes first. create_entities for people, projects and things, add_observations for "
    "single facts, create_relations in active voice.",
    tools=(*CHANGES, *NODES),
    reply=reply,
    fail=fail,
    argument_fault=argument_fault,
    offers=Offers(resources=Resources(URI, resource_page, resource_read, whole=URI)),
    exchange=Exchange(
        imports=(Import("server-memory", _FORMAT, import_graph, preview_graph, is_memory_file),),
        exports=(Export("graph", _FORMAT, export_graph),),
    ),
    memories=Memories(sources=sources, sources_of=sources_of, curate=curate, compose=compose, erase=erase),
    extra=True,
)

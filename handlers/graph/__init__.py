"""Dialect `graph`: the nine tools of the reference memory server, a knowledge graph of entities and relations."""

from handlers.graph.changes import TOOLS as CHANGES
from handlers.graph.memory_file import export_graph, import_graph, is_memory_file, preview_graph
from handlers.graph.nodes import SPACE, compose, curate, sources, sources_of
from handlers.graph.nodes import TOOLS as NODES
from handlers.graph.replies import RESOURCES, argument_fault, fail, reply
from kernel.calls.dialect import Dialect, Exchange, Memories, Offers
from kernel.memories.import_records import Export, Import

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
    offers=Offers(resources=RESOURCES),
    exchange=Exchange(
        imports=(Import("server-memory", _FORMAT, import_graph, preview_graph, is_memory_file),),
        exports=(Export("graph", _FORMAT, export_graph),),
    ),
    memories=Memories(sources=sources, sources_of=sources_of, curate=curate, compose=compose),
    extra=True,
)

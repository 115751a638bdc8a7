"""Dialect `paths` (seed 004): memories under unique paths, answered in YAML."""

from handlers.paths.memories import (
    CURATING,
    RESOURCES,
    SPACE,
    TOOLS,
    brief,
    complete,
    compose,
    curate,
    fail,
    past_sources,
    reply,
    sources,
    sources_of,
)
from kernel.calls.dialect import Dialect, Memories, Offers
from kernel.calls.tools import lazily
from kernel.store.history import Past

DIALECT = Dialect(
    name=SPACE,
    about="Memories under unique paths: add, replace, drop, clear, read and list. Every answer is YAML.",
    guide="Call list_memories first, or recall where it is offered. Keep one topic a memory, under a short path that "
    "begins with the project, such as web/ports. replace_memory when it changes, drop_memory when it is over; "
    "clear_memory only when the user asks for it.",
    tools=TOOLS,
    reply=reply,
    fail=fail,
    offers=Offers(resources=RESOURCES, complete=complete),
    memories=Memories(
        places="FOLDER",
        sources=sources,
        sources_of=sources_of,
        curate=curate,
        curating=CURATING,
        compose=compose,
        brief=brief,
        past=Past(past_sources),
        take=lazily("handlers.paths.intake:take"),
        find_absent=lazily("handlers.paths.intake:find_absent"),
    ),
)

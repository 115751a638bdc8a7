"""Dialect `paths` (seed 004): memories under unique paths, answered in YAML."""

from handlers.paths import memories
from kernel.calls.dialect import Dialect, Memories, Offers
from kernel.calls.tools import lazily
from kernel.store.history import Past

DIALECT = Dialect(
    name=memories.SPACE,
    about="Memories under unique paths: add, replace, drop, clear, read and list. Every answer is YAML.",
    guide="Call list_memories first, or recall where it is offered. Keep one topic a memory, under a short path that "
    "begins with the project, such as web/ports. replace_memory when it changes, drop_memory when it is over; "
    "clear_memory only when the user asks for it.",
    tools=memories.TOOLS,
    reply=memories.reply,
    fail=memories.fail,
    offers=Offers(resources=memories.RESOURCES, complete=memories.complete),
    memories=Memories(
        places=("FOLDER",),
        sources=memories.sources,
        sources_of=memories.sources_of,
        curate=memories.curate,
        curating=memories.CURATING,
        compose=memories.compose,
        brief=memories.brief,
        past=Past(memories.past_sources),
        take=lazily("handlers.paths.intake:take"),
        find_absent=lazily("handlers.paths.intake:find_absent"),
    ),
)

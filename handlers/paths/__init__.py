"""Dialect `paths` (seed 004): memories under unique paths, answered in YAML."""

import msgspec
from msgspec import Struct

from handlers.paths.memories import (
    CURATING,
    RESOURCES,
    SPACE,
    TOOLS,
    brief,
    complete,
    compose,
    curate,
    past_sources,
    sources,
    sources_of,
)
from kernel.calls.dialect import Dialect, Memories, Offers
from kernel.calls.tools import Reply, Tool, lazily
from kernel.core.errors import Fault
from kernel.core.text import json_bytes, yaml_block
from kernel.store.history import Past

_LABELS = {
    "not_found": "MEMORY_NOT_FOUND",
    "conflict": "MEMORY_ALREADY_EXISTS",
    "busy": "MEMORY_STORAGE_ERROR",
    "disabled": "MEMORY_STORAGE_ERROR",
    "storage": "MEMORY_STORAGE_ERROR",
    "internal": "MEMORY_STORAGE_ERROR",
}


def reply(tool: Tool, result: Struct) -> Reply:
    """Return the result as a YAML mapping, keys in the contract's order, and the same as JSON."""
    return Reply(yaml_block(msgspec.to_builtins(result)).encode(), "application/yaml", None, json_bytes(result))


def fail(fault: Fault) -> Reply:
    """Return the contract's error mapping: status, error_code, message."""
    label = fault.label or _LABELS.get(fault.code, "INVALID_ARGS")
    pairs = {"status": "error", "error_code": label, "message": fault.message}
    return Reply(yaml_block(pairs).encode(), "application/yaml", fault.code)


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

"""Dialect `sessions` (seed 002): memories of coding sessions with ranked search, and a graph of their entities."""

from collections.abc import Iterator
from typing import Any

import msgspec

from handlers.sessions import admin, graph, memories, removal, search
from handlers.sessions.settings import SETTINGS
from kernel.calls.dialect import Dialect, Exchange, IndexSource, Keys, Memories
from kernel.calls.tools import Reply, Tool, json_reply, lazily
from kernel.core.errors import Fault
from kernel.core.text import json_bytes
from kernel.memories.import_records import Import
from kernel.store.history import Past
from kernel.store.transaction import Tx

_JSON = "application/json"
_LISTS = (search.MemoryList, search.SearchResults, search.MentionedEntities)


def reply(tool: Tool, result: Any) -> Reply:
    """Return the result as JSON; the text of a list is the bare array, and an empty list has no text block."""
    plain = json_reply(tool, result)
    if not isinstance(result, _LISTS):
        return plain
    return plain._replace(body=json_bytes(result.result), content=None if result.result else b"[]")


def fail(fault: Fault) -> Reply:
    body = msgspec.json.encode({"status": "error", "error": fault.message, "tool": fault.tool})
    return Reply(body, _JSON, fault.code, body)


def sources(tx: Tx) -> Iterator[IndexSource]:
    yield from memories.sources(tx)
    yield from graph.sources(tx)


def sources_of(tx: Tx, keys: Keys) -> Iterator[IndexSource]:
    """Yield the documents of some memories with the entities that rest on them, and of some entities."""
    memory_ids = _numbers(keys, memories.SPACE)
    yield from memories.sources_of(tx, memory_ids)
    yield from graph.sources_of(tx, _numbers(keys, graph.ENTITY_SPACE), memory_ids)


def _numbers(keys: Keys, space: str) -> list[int]:
    return [number for space_, key in keys if space_ == space and (number := memories.number_of(key))]


DIALECT = Dialect(
    name=memories.SPACE,
    about="Memories of coding sessions. Pass the session_id of your session to remember and search_memory, and start a "
    "session with search_memory and an empty query.",
    guide="Call search_memory with an empty query first, with the session_id of your session. What you remember"
    ' with kind decision or handoff, and {"project": "NAME"} as metadata_json, the next session in '
    "that project is shown.",
    tools=(*memories.TOOLS, *search.TOOLS, *graph.TOOLS, *admin.TOOLS),
    reply=reply,
    fail=fail,
    memories=Memories(
        places=("SESSION",),
        sources=sources,
        sources_of=sources_of,
        curate=removal.curate,
        curating=removal.TOOLS,
        compose=removal.compose,
        brief=removal.brief,
        keep_handoff=removal.keep_handoff,
        past=Past(memories.past_sources, unrecorded=(graph.ENTITY_SPACE,), keeps_scope=True),
        tagged=memories.tagged,
        take=lazily("handlers.sessions.intake:take"),
        find_absent=lazily("handlers.sessions.intake:find_absent"),
        session_space=memories.SPACE,
    ),
    settings=SETTINGS,
    exchange=Exchange(
        imports=(
            Import(
                "code-memory",
                "code_memory.db of mcp-code-vector-memory-sql",
                lazily("handlers.sessions.import_code_memory:code_memory"),
            ),
        )
    ),
)

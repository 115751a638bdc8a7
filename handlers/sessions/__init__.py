"""Dialect `sessions` (seed 002): memories of coding sessions with ranked search, and a graph of what they mention."""

from typing import Any

import msgspec

from handlers.sessions import admin, graph, memories
from handlers.sessions.import_code_memory import CODE_MEMORY
from handlers.sessions.requests import Remember, SearchMemory
from handlers.sessions.results import MemoryList, MentionedEntities, SearchResults
from handlers.sessions.settings import SETTINGS
from handlers.sessions.summary import has_library
from kernel.errors import Fault
from kernel.store.transaction import Tx
from kernel.tools import Dialect, Hints, Hooks, IndexSource, Reply, Schema, Tool, exclusive, read, write

_JSON = "application/json"
# A call that may wait twice takes a longer way, so only where there may be a model to wait for.
_AHEAD = memories.prepare_summary if has_library() else None
_LISTS = (MemoryList, SearchResults, MentionedEntities)


def reply(tool: Tool, result: Any) -> Reply:
    """The result as JSON; of a list the text is the bare array, and there is no text where it is empty."""
    structured = msgspec.json.encode(result)
    if not isinstance(result, _LISTS):
        return Reply(structured, _JSON, None, structured)
    body = msgspec.json.encode(result.result)
    return Reply(body, _JSON, None, structured, None if result.result else b"[]")


def fail(fault: Fault) -> Reply:
    """`{"status": "error", "error", "tool"}`."""
    body = msgspec.json.encode({"status": "error", "error": fault.message, "tool": fault.tool})
    return Reply(body, _JSON, fault.code, body)


def sources(tx: Tx) -> list[IndexSource]:
    """Every memory and every entity as the index must hold it."""
    return memories.sources(tx) + graph.sources(tx)


def _with_session(request: type[Remember] | type[SearchMemory]) -> Schema:
    """The schema of a request as the contract has it, `session_id` required: a client that sends none is refused,
    unless the server has a session for it.
    """
    schema = msgspec.json.schema(request)["$defs"][request.__name__]
    shape = schema["properties"]["session_id"]
    schema["properties"]["session_id"] = {**shape["anyOf"][0], "description": shape["description"]}
    return {
        "type": "object",
        "properties": schema["properties"],
        "required": [*schema["required"], "session_id"],
        "additionalProperties": False,
    }


DIALECT = Dialect(
    name=memories.SPACE,
    about="Memories of coding sessions. Pass the session_id of your session to remember and search_memory, and start a "
    "session with search_memory and an empty query.",
    tools=(
        write(
            memories.remember,
            Hints("Remember"),
            permission="write",
            hooks=Hooks(texts=memories.texts_to_embed, prepare=_AHEAD),
            input=_with_session(Remember),
        ),
        read(memories.search_memory, Hints("Search memory"), permission="read", input=_with_session(SearchMemory)),
        read(memories.list_recent, Hints("List recent memories"), permission="read"),
        read(memories.list_entities, Hints("List entities of a memory"), permission="read"),
        write(graph.upsert_entity, Hints("Upsert entity", idempotent=True), permission="write"),
        write(graph.add_relation, Hints("Add relation", idempotent=True), permission="write"),
        read(graph.get_entity, Hints("Get entity"), permission="read"),
        read(graph.get_context_graph, Hints("Get context graph"), permission="read"),
        exclusive(
            admin.maintenance,
            Hints("Maintenance", destructive=True),
            permission={"prune_older_than": "admin", "purge_all": "admin", "purge_session": "write", "vacuum": "admin"},
        ),
        read(admin.diagnostics, Hints("Diagnostics"), permission="admin"),
        read(admin.health, Hints("Health"), permission="admin"),
    ),
    reply=reply,
    fail=fail,
    sources=sources,
    settings=SETTINGS,
    imports=(CODE_MEMORY,),
)

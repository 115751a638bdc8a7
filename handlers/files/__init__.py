"""Dialect `files`: the tool `memory` of memory_20250818, files below /memories, and stores of memories over REST."""

from typing import Any

import msgspec

from handlers.files import memory_stores, stored_memories, versions
from handlers.files.memories import NO_PREFIX, TOOLS, Answer, compose, curate, erase, sources, sources_of
from handlers.files.records import check_restored, past_sources
from kernel.calls.dialect import Dialect, Files, Memories
from kernel.calls.tools import Reply, Tool, json_reply
from kernel.core.errors import Code, Fault
from kernel.store.history import Past

_TEXT = "text/plain"
_JSON = "application/json"
# The types of errors that the SDKs of the vendor know.
_TYPES: dict[Code, str] = {
    "invalid": "invalid_request_error",
    "not_found": "not_found_error",
    "conflict": "invalid_request_error",
    "blocked": "permission_error",
    "disabled": "invalid_request_error",
    "busy": "overloaded_error",
    "storage": "api_error",
    "internal": "api_error",
}


def reply(tool: Tool, result: Any) -> Reply:
    if isinstance(result, Answer):
        return Reply(result.text.encode(), _TEXT)
    return json_reply(tool, result)


def fail(fault: Fault) -> Reply:
    """Return `Error: ...` as plain text, of a REST method `{"type", "message"}`, which the edge wraps."""
    if fault.tool not in _REST:
        prefix = "" if fault.label == NO_PREFIX else "Error: "
        return Reply(f"{prefix}{fault.message}".encode(), _TEXT, fault.code)
    error = {"type": fault.label or _TYPES[fault.code], "message": fault.message, **fault.context}
    return Reply(msgspec.json.encode(error), _JSON, fault.code)


METHODS = (*memory_stores.METHODS, *stored_memories.METHODS, *versions.METHODS)
_REST = {method.tool.name for method in METHODS}
DIALECT = Dialect(
    name="files",
    about="Files below /memories that you keep for later conversations. Every answer is plain text.",
    guide="View /memories first. Keep one file a topic; update it with str_replace, delete what is no longer true.",
    tools=TOOLS,
    reply=reply,
    fail=fail,
    memories=Memories(
        places=("/memories", "/memories/FOLDER", "memstore_ID"),
        sources=sources,
        sources_of=sources_of,
        curate=curate,
        erase=erase,
        compose=compose,
        past=Past(past_sources),
    ),
    files=Files(after_undo=check_restored),
    rest=METHODS,
    extra=True,
)

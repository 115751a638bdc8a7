"""Dialect `files`: the tool `memory` of memory_20250818, files below /memories, and stores of memories over REST."""

from typing import Any

from handlers.files import memory_stores, stored_memories, versions
from handlers.files.curation import compose, curate, erase
from handlers.files.memories import TOOLS, sources, sources_of
from handlers.files.records import past_sources
from handlers.files.rest_replies import rest_fail, rest_reply
from handlers.files.schemas import Answer
from handlers.files.undo import check_restored
from kernel.calls.dialect import Dialect, Files, Memories
from kernel.calls.tools import Reply, Tool
from kernel.core.errors import Fault
from kernel.store.history import Past

_TEXT = "text/plain"


def reply(tool: Tool, result: Any) -> Reply:
    """Return the text of the contract, or the JSON of a REST method."""
    return Reply(result.text.encode(), _TEXT) if isinstance(result, Answer) else rest_reply(result)


def fail(fault: Fault) -> Reply:
    """Return the message as plain text, or the error of a REST method."""
    if fault.tool in _REST:
        return rest_fail(fault)
    return Reply(fault.message.encode(), _TEXT, fault.code)


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
        sources=sources,
        sources_of=sources_of,
        curate=curate,
        erase=erase,
        compose=compose,
        past=Past(past_sources),
    ),
    files=Files(
        after_undo=check_restored,
    ),
    rest=METHODS,
    extra=True,
)

"""Dialect `files`: the tool `memory` of memory_20250818, files below /memories."""

from handlers.files.memories import TOOLS, sources
from handlers.files.schemas import Answer
from kernel.errors import Fault
from kernel.tools import Dialect, Reply, Tool

_TEXT = "text/plain"


def reply(tool: Tool, result: Answer) -> Reply:
    """The text of the contract."""
    return Reply(result.text.encode(), _TEXT)


def fail(fault: Fault) -> Reply:
    """The message as plain text."""
    return Reply(fault.message.encode(), _TEXT, fault.code)


DIALECT = Dialect(
    name="files",
    about="Files below /memories that you keep for later conversations. Every answer is plain text.",
    tools=TOOLS,
    reply=reply,
    fail=fail,
    sources=sources,
    extra=True,
)

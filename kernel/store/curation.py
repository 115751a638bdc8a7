"""What a person may do with one memory, as calls of the tools of its dialect."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class ToolCall(NamedTuple):
    """A call of one of the dialect's tools; a new text goes into the argument `text`."""

    tool: str
    arguments: Mapping[str, Any]
    text: str = ""


class Curation(NamedTuple):
    """What a person may do with one memory: its text as it is edited, and the calls that edit it and forget it."""

    text: str
    edit: ToolCall | None = None
    forget: ToolCall | None = None

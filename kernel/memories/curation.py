"""A memory as a person sees and edits it: links to others, and calls of the tools of its dialect."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

MOST_LINKS = 100  # that are shown of one memory


class ToolCall(NamedTuple):
    """A call of one of the dialect's tools; a new text goes into the argument `text`, the end of its validity into
    `until`, if it has one.
    """

    tool: str
    arguments: Mapping[str, Any]
    text: str = ""
    until: str = ""


class Neighbour(NamedTuple):
    """A link of a memory, from it or to it: another memory by space and key, or without a space only a name."""

    relation: str
    outgoing: bool
    space: str
    key: str


class Curation(NamedTuple):
    """One memory for a person: its text as it is edited, the calls that edit and forget it, its links, its resource.

    Of a memory that no tool may change, `lock` says why, as in "it is a hard constraint", and `forget_locked` is the
    call of an admin that forgets it all the same. `obstacle` says why there is no call to forget it. `observations` has
    the call that forgets one observation of an entity, by its text. `until` is the end of its validity.
    `tag(name)` is the call that adds a tag, None if the memory has it, and `move(folder)` the call that moves it there.
    """

    text: str
    edit: ToolCall | None = None
    forget: ToolCall | None = None
    links: Sequence[Neighbour] = ()
    uri: str = ""
    lock: str = ""
    forget_locked: ToolCall | None = None
    obstacle: str = ""
    observations: Mapping[str, ToolCall] = MappingProxyType({})
    until: str = ""
    tag: Callable[[str], ToolCall | None] | None = None
    move: Callable[[str], ToolCall] | None = None

"""The offers of a dialect beside its tools: resources, by URI, and prompts, as MCP defines them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from kernel.store.transaction import Tx


class Resource(NamedTuple):
    uri: str
    name: str
    title: str = ""
    about: str = ""
    media: str = "text/plain"
    size: int | None = None
    modified: str | None = None


class ResourceContents(NamedTuple):
    """The contents of a resource: text, or bytes; `about` is its metadata of MCP's extensions, by their names."""

    uri: str
    media: str
    data: str | bytes
    about: Mapping[str, Any] = MappingProxyType({})


class ResourceTemplate(NamedTuple):
    """A resource template with an RFC 6570 URI pattern."""

    pattern: str
    name: str
    title: str = ""
    about: str = ""
    media: str = "text/plain"


class Resources(NamedTuple):
    """A dialect's resources: `page(tx, cursor) -> (resources, next cursor)`, `read(tx, uri) -> contents or None`.

    `whole` is the URI of a resource that every call which writes may change: clients can subscribe to it. `fixed`
    resources do not change while the server runs.
    """

    scheme: str
    page: Callable[[Tx, str | None], tuple[list[Resource], str | None]]
    read: Callable[[Tx, str], list[ResourceContents] | None]
    templates: tuple[ResourceTemplate, ...] = ()
    whole: str = ""
    fixed: bool = False


class Skill(NamedTuple):
    """An Agent Skill: a folder of files called like it, with SKILL.md among them, by path; text in UTF-8."""

    name: str
    about: str
    license: str
    files: Mapping[str, bytes]


class PromptArgument(NamedTuple):
    name: str
    about: str = ""
    required: bool = False


class PromptMessage(NamedTuple):
    """One message of a prompt; `content` is an MCP content block."""

    role: Literal["user", "assistant"]
    content: Mapping[str, Any]


class Prompt(NamedTuple):
    """An MCP prompt: `handler(tx, arguments) -> messages`; if `interactive`, `handler(tx, arguments, interaction)`."""

    name: str
    about: str
    handler: Callable[..., Any]
    arguments: tuple[PromptArgument, ...] = ()
    title: str = ""
    interactive: bool = False

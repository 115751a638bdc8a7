"""What a tool, a dialect and a reply are, and how a tool's types become JSON schema."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from kernel.errors import Code, Fault
from kernel.settings import Setting

Mode = Literal["read", "write", "exclusive"]
Schema = dict[str, Any]


class Hints(NamedTuple):
    """What a client may assume about a tool; `short` (under about 50 microseconds) means it runs on the event loop.

    Without `typed` the lists of MCP leave out what the tool returns, for dialects that answer in text alone: a list is
    paid for in every conversation.
    """

    title: str = ""
    destructive: bool = False
    idempotent: bool = False
    short: bool = False
    typed: bool = True


class First(NamedTuple):
    """What a reading tool may find that has to be written before it reads, such as files changed by hand.

    `check(tx, request)` runs on the reader, in the same snapshot as the handler: None lets the handler go on, anything
    else goes to `write(tx, request, found)`, a transaction of its own. That returns whether to check again before the
    handler runs. `texts(found)` are the texts `write` will embed.
    """

    check: Callable[[Any, Any], Any]
    write: Callable[[Any, Any, Any], bool]
    texts: Callable[[Any], Sequence[str]]


class Tool(NamedTuple):
    """One tool: `handler(tx, request) -> result`; with `talk` set, `handler(tx, request, turn) -> result`.

    `texts(request)` are the texts the handler will embed. `many(tx, requests)` does the work of several calls of one
    group with set-based statements and gives a result or a Fault for each; a Fault must have changed nothing. `reads`
    are the arms of a bundled request that only read: such a call of a tool that writes runs as a read.
    `follow(tx, request, result)` is a write that a read leaves behind, such as counting what was seen: it is queued
    with the answer, nobody waits for it, and where the queue is full it is not done.
    `long` work goes through `progress.steps`, so that an MCP client that asks to can hear how far it is.
    `ahead(settings, request)` gives None, or slow work for a reader to do first; that returns the request to run.
    What writes stands in the audit anyway; a read that does too is `audited`.
    """

    name: str
    about: str
    request: Any
    result: Any
    handler: Callable[..., Any]
    mode: Mode
    hints: Hints
    texts: Callable[[Any], Sequence[str]] | None = None
    many: Callable[[Any, Sequence[Any]], list[Any]] | None = None
    talk: bool = False
    long: bool = False
    input: Schema | None = None
    reads: tuple[type, ...] = ()
    ahead: Callable[[Mapping[str, Any], Any], Callable[[Any], Any] | None] | None = None
    follow: Callable[[Any, Any, Any], None] | None = None
    first: First | None = None
    audited: bool = False


class Misread(NamedTuple):
    """Why arguments are not what a tool takes; `field` is its path (`scope.type`), empty where no field is to blame."""

    tool: Tool
    problem: Literal["missing", "unknown", "wrong", "unreadable"]
    field: str
    message: str


class Reply(NamedTuple):
    """A dialect's answer: `body` as its users read it, `structured` the same as JSON, `content` ready MCP blocks."""

    body: bytes
    media: str
    fault: Code | None = None
    structured: bytes | None = None
    content: bytes | None = None


class Ask(NamedTuple):
    """A result that needs the client first: MCP input requests by key, and state that the kernel seals."""

    inputs: Mapping[str, Mapping[str, Any]]
    state: Any = None


class Turn(NamedTuple):
    """What a talking tool may use besides its arguments: the client's answers, its own earlier state, and emission."""

    answers: Mapping[str, Any]
    state: Any
    capabilities: Mapping[str, Any]
    progress: Callable[[float, float | None, str | None], None]
    log: Callable[[str, Any], None]


class Resource(NamedTuple):
    """One readable thing with a URI of its own."""

    uri: str
    name: str
    title: str = ""
    about: str = ""
    media: str = "text/plain"
    size: int | None = None
    modified: str | None = None


class Content(NamedTuple):
    """What a resource holds: text, or bytes."""

    uri: str
    media: str
    data: str | bytes


class Template(NamedTuple):
    """A family of resources, as an RFC 6570 URI template."""

    pattern: str
    name: str
    title: str = ""
    about: str = ""
    media: str = "text/plain"


class Resources(NamedTuple):
    """A dialect's resources: `page(tx, cursor) -> (resources, next cursor)`, `read(tx, uri) -> contents or None`."""

    scheme: str
    page: Callable[[Any, str | None], tuple[list[Resource], str | None]]
    read: Callable[[Any, str], list[Content] | None]
    templates: tuple[Template, ...] = ()


class Argument(NamedTuple):
    """One argument of a prompt."""

    name: str
    about: str = ""
    required: bool = False


class Message(NamedTuple):
    """One message of a prompt; `content` is an MCP content block."""

    role: Literal["user", "assistant"]
    content: Mapping[str, Any]


class Prompt(NamedTuple):
    """A prompt the client may offer: `handler(tx, arguments) -> messages`; with `talk`, `(tx, arguments, turn)`."""

    name: str
    about: str
    handler: Callable[..., Any]
    arguments: tuple[Argument, ...] = ()
    title: str = ""
    talk: bool = False


class Source(NamedTuple):
    """One memory as a dialect's own rows have it: what the index must hold for it."""

    space: str
    key: str
    scope: str
    text: str
    words: str = ""


class Imported(NamedTuple):
    """What an import did: rows by kind, and one line for each thing the user should hear of."""

    counts: Mapping[str, int]
    remarks: Sequence[str] = ()


class Import(NamedTuple):
    """`quipu import KIND PATH`: `run(tx, path, password)` brings in the data of the program a dialect comes from."""

    kind: str
    about: str
    run: Callable[[Any, Path, str | None], Imported]


class Dialect(NamedTuple):
    """A tool set as its users know it, with its own way of saying yes and no.

    `reply(tool, result)` and `fail(fault)` give the `Reply`; `complete(tx, ref, argument, value, others)` gives
    completions; `sources(tx)` gives everything of the dialect that the index must hold; `misread(found)` puts arguments
    that do not fit into the dialect's words, where the kernel's own do not do; `undone(tx, restored)` puts back what
    lies outside the database, for (space, key, text) of what is there again, and raises a Fault if it cannot;
    `choices` names parameters whose values a setting lists, so that the schemas say what is configured.
    """

    name: str
    about: str
    tools: tuple[Tool, ...]
    reply: Callable[[Tool, Any], Reply]
    fail: Callable[[Fault], Reply]
    resources: Resources | None = None
    prompts: tuple[Prompt, ...] = ()
    complete: Callable[[Any, str, str, str, Mapping[str, str]], list[str]] | None = None
    sources: Callable[[Any], list[Source]] | None = None
    settings: tuple[Setting, ...] = ()
    imports: tuple[Import, ...] = ()
    misread: Callable[[Misread], Fault] | None = None
    undone: Callable[[Any, Sequence[tuple[str, str, str]]], None] | None = None
    choices: Mapping[str, str] = MappingProxyType({})


def _tool(mode: Mode, handler: Callable[..., Any], hints: Hints, **more: Any) -> Tool:
    types = get_type_hints(handler)
    request = types[handler.__code__.co_varnames[1]]
    about = " ".join((handler.__doc__ or "").split())
    return Tool(handler.__name__, about, request, types["return"], handler, mode, hints, **more)


def read(handler: Callable[..., Any], hints: Hints = Hints(), **more: Any) -> Tool:
    """A tool that only reads: it runs on a connection opened read-only."""
    return _tool("read", handler, hints, **more)


def write(handler: Callable[..., Any], hints: Hints = Hints(), **more: Any) -> Tool:
    """A tool that writes: it shares a transaction and one fsync with its neighbours in the queue."""
    return _tool("write", handler, hints, **more)


def exclusive(handler: Callable[..., Any], hints: Hints = Hints(), **more: Any) -> Tool:
    """A tool that writes in a transaction of its own, for work that is long or touches more than the database."""
    return _tool("exclusive", handler, hints, **more)


def result_types(tool: Tool) -> tuple[type, ...]:
    """The result types of a tool with `Ask` left out, since an `Ask` never reaches structured content."""
    union = get_origin(tool.result) in {Union, UnionType}
    parts = get_args(tool.result) if union else (tool.result,)
    return tuple(part for part in parts if part is not Ask)

"""The types a dialect is declared with: tools, resources, prompts, imports, and the replies of its handlers."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, Literal, NamedTuple, TypedDict, Union, Unpack, get_args, get_origin, get_type_hints

from kernel.errors import Code, Fault
from kernel.settings import Setting
from kernel.store.transaction import Tx

Mode = Literal["read", "write", "exclusive"]
Access = Literal["read", "write", "admin"]
Schema = dict[str, Any]


class Hints(NamedTuple):
    """What a client may assume about a tool; `short` (under about 50 microseconds) means it runs on the event loop.

    Without `typed` the tool lists of MCP leave out the output schema, for dialects that answer in text alone: every
    conversation pays for a list in tokens.
    """

    title: str = ""
    destructive: bool = False
    idempotent: bool = False
    short: bool = False
    typed: bool = True


class Deviation(NamedTuple):
    """One difference between a tool and its contract, with a reason that a user of the original would accept.

    `what` begins with a kind: `tool`, `parameter NAME`, `required NAME`, `default NAME`, `values NAME` and `type NAME`
    are compared with the contract by a test; other kinds are text.
    """

    what: str
    contract: str
    ours: str
    reason: str


class Precheck(NamedTuple):
    """A write that a read may need first, such as indexing files that changed on disk.

    `check(tx, request)` runs on the reader, in the same snapshot as the handler: None lets the handler run, anything
    else goes to `write(tx, request, found)` in a transaction of its own, which returns whether to check again.
    `texts(found)` are the texts that `write` embeds.
    """

    check: Callable[[Tx, Any], Any]
    write: Callable[[Tx, Any, Any], bool]
    texts: Callable[[Any], Sequence[str]]


class Hooks(NamedTuple):
    """Optional steps around a handler.

    `texts(request)` lists the texts the handler embeds, so that a group of calls embeds them together.
    `batch(tx, requests)` runs several calls of one group with set-based statements; it gives a result or a Fault for
    each, and a Fault must have changed nothing.
    `prepare(settings, request)` gives None, or slow work for a reader to do first, which returns the request to run.
    `precheck` writes before a read.
    `after_read(tx, request, result)` is a write that a read leaves behind, such as counting access: it is queued with
    the answer, the caller does not wait for it, and it is dropped if the queue is full.
    """

    texts: Callable[[Any], Sequence[str]] | None = None
    batch: Callable[[Tx, Sequence[Any]], list[Any]] | None = None
    prepare: Callable[[Mapping[str, Any], Any], Callable[[Tx], Any] | None] | None = None
    precheck: Precheck | None = None
    after_read: Callable[[Tx, Any, Any], None] | None = None


NO_HOOKS = Hooks()


class Tool(NamedTuple):
    """One tool: `handler(tx, request) -> result`; if `interactive`, `handler(tx, request, interaction) -> result`.

    `permission` is what a key needs to call it, or for each action of a bundled tool; `read_arms` are the arms of a
    bundled request that only read, so that such a call of a writing tool runs as a read. `long` work goes through
    `progress.steps`, so that an MCP client can ask for progress. Writes are audited, a read is if `audited` says so.
    """

    name: str
    description: str
    request: Any
    result: Any
    handler: Callable[..., Any]
    mode: Mode
    hints: Hints
    permission: Access | Mapping[str, Access] = "admin"
    deviations: tuple[Deviation, ...] = ()
    hooks: Hooks = NO_HOOKS
    interactive: bool = False
    long: bool = False
    input: Schema | None = None
    read_arms: tuple[type, ...] = ()
    audited: bool = False


class ArgumentError(NamedTuple):
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


class InputRequired(NamedTuple):
    """A result that needs the client first: MCP input requests by key, and state that the kernel seals."""

    inputs: Mapping[str, Mapping[str, Any]]
    state: Any = None


class Interaction(NamedTuple):
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


class ResourceContents(NamedTuple):
    """What a resource holds: text, or bytes."""

    uri: str
    media: str
    data: str | bytes


class ResourceTemplate(NamedTuple):
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
    read: Callable[[Any, str], list[ResourceContents] | None]
    templates: tuple[ResourceTemplate, ...] = ()


class PromptArgument(NamedTuple):
    """One argument of a prompt."""

    name: str
    about: str = ""
    required: bool = False


class PromptMessage(NamedTuple):
    """One message of a prompt; `content` is an MCP content block."""

    role: Literal["user", "assistant"]
    content: Mapping[str, Any]


class Prompt(NamedTuple):
    """A prompt the client may offer: `handler(tx, arguments) -> messages`; with `talk`, `(tx, arguments, turn)`."""

    name: str
    about: str
    handler: Callable[..., Any]
    arguments: tuple[PromptArgument, ...] = ()
    title: str = ""
    interactive: bool = False


class IndexSource(NamedTuple):
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
    `choices` names parameters whose values a setting lists, so that the schemas say what is configured. `deviations`
    holds those of several tools, by a text that names the tools. A dialect that `reads_all_dialects` is out of
    reach for keys and tokens that are limited to some dialects.
    """

    name: str
    about: str
    tools: tuple[Tool, ...]
    reply: Callable[[Tool, Any], Reply]
    fail: Callable[[Fault], Reply]
    resources: Resources | None = None
    prompts: tuple[Prompt, ...] = ()
    complete: Callable[[Any, str, str, str, Mapping[str, str]], list[str]] | None = None
    sources: Callable[[Any], list[IndexSource]] | None = None
    settings: tuple[Setting, ...] = ()
    imports: tuple[Import, ...] = ()
    argument_fault: Callable[[ArgumentError], Fault] | None = None
    after_undo: Callable[[Any, Sequence[tuple[str, str, str]]], None] | None = None
    choices: Mapping[str, str] = MappingProxyType({})
    deviations: Mapping[str, tuple[Deviation, ...]] = MappingProxyType({})
    reads_all_dialects: bool = False


class ToolOptions(TypedDict, total=False):
    """The fields of `Tool` that a row may set; `Tool` says what they mean."""

    permission: Access | Mapping[str, Access]
    deviations: tuple[Deviation, ...]
    hooks: Hooks
    interactive: bool
    long: bool
    input: Schema | None
    read_arms: tuple[type, ...]
    audited: bool


def read(handler: Callable[..., Any], hints: Hints = Hints(), **options: Unpack[ToolOptions]) -> Tool:
    """A tool that only reads: it runs on a connection opened read-only."""
    return _tool("read", handler, hints, options)


def write(handler: Callable[..., Any], hints: Hints = Hints(), **options: Unpack[ToolOptions]) -> Tool:
    """A tool that writes: it shares a transaction and one fsync with its neighbours in the queue."""
    return _tool("write", handler, hints, options)


def exclusive(handler: Callable[..., Any], hints: Hints = Hints(), **options: Unpack[ToolOptions]) -> Tool:
    """A tool that writes in a transaction of its own, for work that is long or touches more than the database."""
    return _tool("exclusive", handler, hints, options)


def _tool(mode: Mode, handler: Callable[..., Any], hints: Hints, options: ToolOptions) -> Tool:
    """Name, description and types are the handler's own."""
    types = get_type_hints(handler)
    request = types[handler.__code__.co_varnames[1]]
    description = " ".join((handler.__doc__ or "").split())
    return Tool(handler.__name__, description, request, types["return"], handler, mode, hints, **options)


def result_types(tool: Tool) -> tuple[type, ...]:
    """The result types of a tool without `InputRequired`, which never reaches structured content."""
    union = get_origin(tool.result) in {Union, UnionType}
    parts = get_args(tool.result) if union else (tool.result,)
    return tuple(part for part in parts if part is not InputRequired)

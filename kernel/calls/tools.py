"""What a dialect offers: tools by name, resources by URI and prompts, as MCP defines them."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args, get_type_hints

from kernel.core.errors import Code, Fault
from kernel.core.text import json_bytes
from kernel.store.transaction import Tx

Mode = Literal["read", "write", "exclusive"]
Access = Literal["read", "write", "admin"]
Schema = dict[str, Any]  # a JSON schema
Request = Any  # a decoded request, of the type that the tool declares
Result = Any  # the result of a tool's handler, of the type that it declares
Found = Any  # the result of a precheck's check, for its write
Handler = Callable[..., Result]


class Hints(NamedTuple):
    """The hints of a tool for clients; a `short` tool (under about 50 microseconds) runs on the event loop.

    Without `typed` the tool lists of MCP leave out the output schema, for dialects that answer in text alone: a list
    costs every conversation tokens. `view` is the URI of the MCP App that shows its results.
    """

    title: str = ""
    destructive: bool = False
    idempotent: bool = False
    short: bool = False
    typed: bool = True
    view: str = ""


class Precheck(NamedTuple):
    """A write that a read may need first, such as indexing files that changed on disk.

    `check(tx, request)` runs on the reader, in the same snapshot as the handler: None lets the handler run, anything
    else is passed to `write(tx, request, found)` in a transaction of its own, which returns whether to check again.
    `texts(found)` are the texts that `write` embeds. If the write fails because the disk does, the read answers with
    what is stored, unless the write is `required`.
    """

    check: Callable[[Tx, Request], Found]
    write: Callable[[Tx, Request, Found], bool]
    texts: Callable[[Found], Sequence[str]]
    required: bool = False


Batch = Callable[[Tx, Sequence[Request]], list[Result | Fault]]
Prepare = Callable[[Mapping[str, Any], Request], Callable[[Tx], Request] | None]


class Hooks(NamedTuple):
    """Optional steps around a handler.

    `texts(request)` lists the texts the handler embeds, so that a group of calls embeds them together. `batch(tx,
    requests)` runs several calls of one group with set-based statements; it returns a result or a Fault for each, and a
    Fault must have changed nothing. `prepare(settings, request)` returns None, or slow work for a reader, which returns
    the request to run. `precheck` writes before a read. `after_read(tx, request, result)` is a write after a read, such
    as counting access: no caller waits for it, and it is dropped if the queue is full.
    """

    texts: Callable[[Request], Sequence[str]] | None = None
    batch: Batch | None = None
    prepare: Prepare | None = None
    precheck: Precheck | None = None
    after_read: Callable[[Tx, Request, Result], None] | None = None


NO_HOOKS = Hooks()


class Tool(NamedTuple):
    """One tool: `handler(tx, request) -> result`; if `interactive`, `handler(tx, request, interaction) -> result`.

    `permission` is the right that a call needs, or for each action of a bundled tool; `read_arms` are the arms of a
    bundled request that only read, so that such a call of a writing tool runs as a read. If nothing else is said, these
    need the right to read, and the other arms that to write. What a destructive tool
    changes is kept for undo, and what requests of the types `kept_arms` change: those that replace, or add what no
    other call removes. `long` work goes through `progress.steps`, so that an MCP client can request progress. Every
    write is audited, a read only if `audited`. The handler of an exclusive tool may return `Steps`, which commit in
    slices, so that other writes get their turn; a call that is cut off keeps the slices that have committed.
    """

    name: str
    description: str
    request: type[Request]
    result: type[Result]
    handler: Handler
    mode: Mode
    hints: Hints
    permission: Access | Mapping[str, Access] = "admin"
    hooks: Hooks = NO_HOOKS
    interactive: bool = False
    long: bool = False
    input: Schema | None = None
    read_arms: tuple[type, ...] = ()
    kept_arms: tuple[type, ...] = ()
    audited: bool = False


class ArgumentError(NamedTuple):
    """Why arguments do not fit a tool; `field` is the path of the field (`scope.type`), empty if there is none.

    `request` is the type of the arguments: that of the action, if they name one. `given` is the value that an enum
    refused, and `hint` says how to mend the call, from the schema of the tool.
    """

    tool: Tool
    problem: Literal["missing", "unknown", "wrong", "unreadable"]
    field: str
    message: str
    request: type[Request]
    given: str | None = None
    hint: str = ""


class Reply(NamedTuple):
    """A dialect's answer: `body` in its own format, `structured` the same as JSON, `content` as encoded MCP blocks."""

    body: bytes
    media: str
    fault: Code | None = None
    structured: bytes | None = None
    content: bytes | None = None


def json_reply(_tool: Tool | None, result: Result) -> Reply:
    """Return the result as compact JSON, which is also the structured content."""
    body = json_bytes(result)
    return Reply(body, "application/json", None, body)


def lazily(name: str) -> Callable[..., Any]:
    """Return the function `module:name`; a server starts without the module, which the first call imports."""
    module, _, function = name.partition(":")

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), function)(*arguments)

    return call


class InputRequired(NamedTuple):
    """A result that needs the client first: MCP input requests by key, and state that the kernel seals."""

    inputs: Mapping[str, Mapping[str, Any]]
    state: object = None


class Interaction(NamedTuple):
    """The input of an interactive tool beside its arguments: the client's answers, earlier state, and callbacks."""

    answers: Mapping[str, Any]
    state: Any
    capabilities: Mapping[str, Any]
    progress: Callable[[float, float | None, str | None], None]
    log: Callable[[str, Any], None]


def confirmation(interaction: Interaction | None, what: str) -> InputRequired | None:
    """Return a question to the user before much is destroyed; None if the client cannot ask, or the user has agreed.

    Raises Fault("blocked") if the user has not.
    """
    modes = None if interaction is None else interaction.capabilities.get("elicitation")
    if interaction is None or modes is None or ("url" in modes and "form" not in modes):
        return None
    answer = interaction.answers.get("confirm")
    if answer is None:
        checkbox: Schema = {"type": "boolean", "title": "Yes, delete them", "default": False}
        schema = {"type": "object", "properties": {"agreed": checkbox}, "required": ["agreed"]}
        params = {"mode": "form", "message": what, "requestedSchema": schema}
        return InputRequired({"confirm": {"method": "elicitation/create", "params": params}})
    content: Mapping[str, Any] = answer.get("content") or {}
    if answer.get("action") != "accept" or content.get("agreed") is not True:
        raise Fault("blocked", "The user did not agree: nothing was deleted.")
    return None


class ToolOptions(TypedDict, total=False):
    """The fields of `Tool` that a row may set; `Tool` explains them."""

    permission: Access | Mapping[str, Access]
    hooks: Hooks
    interactive: bool
    long: bool
    input: Schema | None
    read_arms: tuple[type, ...]
    kept_arms: tuple[type, ...]
    audited: bool


def read(handler: Handler, hints: Hints = Hints(), **options: Unpack[ToolOptions]) -> Tool:
    """Return a tool that only reads: it runs on a connection opened read-only."""
    return _tool("read", handler, hints, options)


def write(handler: Handler, hints: Hints = Hints(), **options: Unpack[ToolOptions]) -> Tool:
    """Return a tool that writes: its calls share a transaction and an fsync with their neighbours in the queue."""
    return _tool("write", handler, hints, options)


def exclusive(handler: Handler, hints: Hints = Hints(), **options: Unpack[ToolOptions]) -> Tool:
    """Return a tool that writes in a transaction of its own, for work that is long or touches more than the
    database.
    """
    return _tool("exclusive", handler, hints, options)


def _tool(mode: Mode, handler: Handler, hints: Hints, options: ToolOptions) -> Tool:
    types = get_type_hints(handler)
    request = types[handler.__code__.co_varnames[1]]
    description = " ".join((handler.__doc__ or "").split())
    if read_arms := options.get("read_arms"):
        rights: Mapping[str, Access] = {
            arm.__struct_config__.tag: "read" if arm in read_arms else "write" for arm in get_args(request)
        }
        options = {"permission": rights, **options}
    return Tool(handler.__name__, description, request, types["return"], handler, mode, hints, **options)


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

"""JSON-RPC messages, decoded once: a typed envelope, parameters typed by method, and raw tool arguments."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from kernel.calls.arguments import json_terms
from kernel.core.limits import Limits, excess
from kernel.core.text import whole_characters
from kernel.mcp import protocol
from kernel.security.permissions import ANONYMOUS, ANONYMOUS_CALLER, Caller

if TYPE_CHECKING:
    from kernel.calls.call import ToolEntry
    from kernel.calls.dispatch import Dispatch

ABSENT = Raw()
Object = dict[str, Any]
Emit = Callable[[bytes], None]


class ProtocolError(Exception):
    """A JSON-RPC error for the client; `data` must be JSON.

    `status` replaces the HTTP status that the era gives the code, and `headers` are added to the response.
    """

    status: int | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def reply(self, id_: bytes = b"null") -> bytes:
        """Return the error as a JSON-RPC response to the request with this encoded id."""
        error: Object = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id_, msgspec.json.encode(error))


class Icon(Struct):
    """An icon of a client; only checked."""

    src: str
    mimeType: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Client(Struct, gc=False):
    name: str
    version: str
    title: str | None = None
    description: str | None = None
    websiteUrl: str | None = None
    icons: list[Icon] | None = None


class ElicitationModes(Struct, omit_defaults=True):
    """The modes of elicitation that the client offers; an empty object means `form`."""

    form: Object | None = None
    url: Object | None = None


class Sampling(Struct, omit_defaults=True):
    context: Object | None = None
    tools: Object | None = None


class Capabilities(Struct, omit_defaults=True, gc=False):
    elicitation: ElicitationModes | None = None
    experimental: dict[str, Object] | None = None
    extensions: dict[str, Object] | None = None
    roots: Object | None = None
    sampling: Sampling | None = None


class Meta(Struct, gc=False):
    """The fields of `_meta` that the protocol defines; the modern era requires the first two."""

    version: str | UnsetType = field(name=protocol.VERSION_KEY, default=UNSET)
    capabilities: Capabilities | UnsetType = field(name=protocol.CAPABILITIES_KEY, default=UNSET)
    client: Client | None = field(name=protocol.CLIENT_KEY, default=None)
    level: protocol.Level | None = field(name=protocol.LEVEL_KEY, default=None)
    token: str | int | None = field(name="progressToken", default=None)
    traceparent: str | None = None
    tracestate: str | None = None
    idempotency_key: str | None = field(name="idempotencyKey", default=None)


class Params(Struct, kw_only=True, gc=False):
    meta: Meta | None = field(name="_meta", default=None)


class Page(Params):
    cursor: str | None = None


class InputResponses(Params, kw_only=True, gc=False):
    """The fields of a request that continues an earlier one; raw, since only interactive handlers read them."""

    answers: Raw = field(name="inputResponses", default=ABSENT)
    state: Raw = field(name="requestState", default=ABSENT)


class Call(InputResponses, kw_only=True, gc=False):
    name: str
    arguments: Raw = Raw(b"{}")


class Get(InputResponses, kw_only=True, gc=False):
    name: str
    arguments: dict[str, str] | None = None


class Read(InputResponses, kw_only=True, gc=False):
    uri: str


class Subscribe(Params, kw_only=True, gc=False):
    """resources/subscribe and resources/unsubscribe; skills/get, which names a URI too."""

    uri: str


class Notifications(Struct, gc=False):
    """The notifications that a client asks for; those of lists are never sent, since the lists do not change."""

    toolsListChanged: bool | None = None
    promptsListChanged: bool | None = None
    resourcesListChanged: bool | None = None
    resourceSubscriptions: list[str] | None = None


class Listen(Params, kw_only=True, gc=False):
    notifications: Notifications


class PromptRef(Struct, tag_field="type", tag="ref/prompt"):
    """Completion for an argument of a prompt."""

    name: str
    title: str | None = None


class ResourceRef(Struct, tag_field="type", tag="ref/resource"):
    """Completion for a variable of a resource template."""

    uri: str


class Argument(Struct):
    name: str
    value: str


class Context(Struct):
    arguments: dict[str, str] | None = None


class Complete(Params, kw_only=True, gc=False):
    ref: PromptRef | ResourceRef
    argument: Argument
    context: Context | None = None


class SetLevel(Params, kw_only=True, gc=False):
    level: protocol.Level


class Initialize(Params, kw_only=True, gc=False):
    protocolVersion: str
    capabilities: Capabilities
    clientInfo: Client


class Envelope(Struct):
    """A request, a notification (no id) or a posted response (no method), with raw parameters."""

    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


class CallEnvelope(Struct, gc=False):
    """A well-formed tools/call, decoded in one pass, since that is most of the traffic."""

    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: Call


Message = Envelope | CallEnvelope


class HeaderParam(NamedTuple):
    """An argument that a header repeats: its path in the arguments, the header's name, its JSON type."""

    path: tuple[str, ...]
    header: bytes
    kind: str


class ToolRoute(NamedTuple):
    """A tool as tools/call finds it; `header` is its name as an unencoded Mcp-Name value, or empty."""

    entry: "ToolEntry"
    interactive: bool
    header_params: tuple[HeaderParam, ...]
    header: bytes


class Inbound(Struct, gc=False):
    """A request that its transport accepted.

    `id` is encoded; `level` is the least log level to send, or None; `route` is set for a tools/call of a known tool.
    The transport sets `caller` and `dispatch` before the request is answered.
    """

    id: bytes
    method: str
    params: Any
    era: protocol.Era
    actor: str = ANONYMOUS
    level: str | None = None
    route: ToolRoute | None = None
    emit: Emit | None = None
    caller: Caller = ANONYMOUS_CALLER
    dispatch: "Dispatch" = cast("Dispatch", None)


_KINDS: dict[str, type[Params]] = {
    "tools/call": Call,
    "tools/list": Page,
    "resources/list": Page,
    "resources/templates/list": Page,
    "resources/read": Read,
    "resources/subscribe": Subscribe,
    "resources/unsubscribe": Subscribe,
    protocol.LISTEN: Listen,
    "skills/list": Page,
    "skills/get": Subscribe,
    "prompts/list": Page,
    "prompts/get": Get,
    "completion/complete": Complete,
    "initialize": Initialize,
    "logging/setLevel": SetLevel,
}
_decode_call = msgspec.json.Decoder(CallEnvelope).decode
_decode_params = msgspec.json.Decoder(Params).decode
_decoders = {
    era.name: {name: msgspec.json.Decoder(kind).decode for name, kind in _KINDS.items() if protocol.knows(era, name)}
    for era in (protocol.LEGACY, protocol.MODERN)
}
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def open_message(body: bytes, limits: Limits) -> Message:
    """Return the message in `body`; raises ProtocolError with -32700 or -32600."""
    if too_much := excess(body, limits):
        raise ProtocolError(protocol.PARSE_ERROR, too_much.capitalize())
    try:
        if not body.isascii():
            body.decode()  # the decoder does not check the encoding of raw fields
        try:
            return _decode_call(body)
        except msgspec.ValidationError:
            return _open_other(body)
    except _UNREADABLE:
        text = whole_characters(body)
        if text != body:
            return open_message(text, limits)
        raise ProtocolError(protocol.PARSE_ERROR, "Parse error") from None


def _open_other(body: bytes) -> Envelope:
    """Return any other message; raises ProtocolError, and what the decoder raises for no JSON."""
    for kind in (Envelope, Raw):  # Raw accepts all JSON, which separates a wrong shape from a parse error
        try:
            message = msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError:
            continue
        if isinstance(message, Envelope):
            return message
    raise ProtocolError(protocol.INVALID_REQUEST, "The body must be one JSON-RPC request or notification object")


def open_params(era: protocol.Era, method: str, raw: Raw | Call) -> tuple[Params, ProtocolError | None]:
    """Return the parameters of a request, typed by its method, or only the common ones and the error in the others."""
    if isinstance(raw, Call):
        return raw, None
    decode = _decoders[era.name].get(method, _decode_params)
    text = bytes(raw)
    if text in (b"", b"null"):
        text = b"{}"
    try:
        return decode(text), None
    except _UNREADABLE as error:
        # The decoder's message names the field and not its value.
        malformed = not isinstance(error, msgspec.ValidationError)
        reason = "not valid JSON" if malformed else json_terms(str(error)).replace("`$.", "`")
        wrong = ProtocolError(protocol.INVALID_PARAMS, f"Invalid params: {reason}")
    if text[:1] != b"{":
        raise ProtocolError(protocol.INVALID_REQUEST, "params must be an object")
    try:
        return _decode_params(text), wrong
    except _UNREADABLE:
        raise wrong from None


def encoded_id(id_: int | str) -> bytes:
    """Return an id as JSON, whatever its size."""
    return b"%d" % id_ if isinstance(id_, int) else msgspec.json.encode(id_)

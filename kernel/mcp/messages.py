"""The messages of MCP: the protocol as tables, JSON-RPC decoded once, and the era of a message.

An envelope and its parameters are typed, the arguments of a tool stay raw. Headers and body must agree on version and
client, and on the method and name by which proxies route.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from kernel.calls.arguments import UNREADABLE, json_terms
from kernel.calls.tools import Schema
from kernel.core.lazy_regex import regex
from kernel.core.limits import Header, Headers, Limits, repeated
from kernel.core.text import excess, whole_characters
from kernel.security.permissions import ANONYMOUS, ANONYMOUS_CALLER, Caller

if TYPE_CHECKING:
    from kernel.calls.dispatch import Dispatch, ToolEntry

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
# The version that `initialize` answers with if it does not know the requested version.
COUNTER_OFFER = HANDSHAKE_VERSIONS[-1]

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

LISTEN = "subscriptions/listen"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: dict[str, int] = {level: number for number, level in enumerate(get_args(Level))}

# No caching fields; the same for all callers; the same for callers with this key; may change at any time.
Cache = Literal["", "static", "own", "fresh"]
CACHES: dict[Cache, dict[str, int | str]] = {
    "": {},
    "static": {"ttlMs": 3_600_000, "cacheScope": "public"},
    "own": {"ttlMs": 3_600_000, "cacheScope": "private"},
    "fresh": {"ttlMs": 0, "cacheScope": "private"},
}


class Era(NamedTuple):
    """A generation of the protocol: its versions, its HTTP status by error code, its code for a missing resource."""

    name: Literal["legacy", "modern"]
    versions: tuple[str, ...]
    http: dict[int, int]
    resource_missing: int


LEGACY = Era(
    "legacy", HANDSHAKE_VERSIONS, {PARSE_ERROR: 400, INVALID_REQUEST: 400, HEADER_MISMATCH: 400}, RESOURCE_NOT_FOUND
)
MODERN = Era(
    "modern",
    MODERN_VERSIONS,
    {
        PARSE_ERROR: 400,
        INVALID_REQUEST: 400,
        METHOD_NOT_FOUND: 404,
        INVALID_PARAMS: 400,
        HEADER_MISMATCH: 400,
        MISSING_CAPABILITY: 400,
        UNSUPPORTED_VERSION: 400,
    },
    INVALID_PARAMS,
)

Capability = Literal["", "tools", "resources", "prompts", "completions", "logging", "skills"]


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

    version: str | UnsetType = field(name=VERSION_KEY, default=UNSET)
    capabilities: Capabilities | UnsetType = field(name=CAPABILITIES_KEY, default=UNSET)
    client: Client | None = field(name=CLIENT_KEY, default=None)
    level: Level | None = field(name=LEVEL_KEY, default=None)
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
    level: Level


class Initialize(Params, kw_only=True, gc=False):
    protocolVersion: str
    capabilities: Capabilities
    clientInfo: Client


class Method(NamedTuple):
    """A method: the eras that have it, its parameters, the capability it belongs to, how its result may be cached.

    `named` is the parameter that the Mcp-Name header repeats.
    """

    name: str
    eras: tuple[Era, ...]
    params: type[Params] = Params
    needs: Capability = ""
    cache: Cache = ""
    named: Literal["", "name", "uri"] = ""


_BOTH = (LEGACY, MODERN)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("tools/call", _BOTH, Call, "tools", named="name"),
        Method("tools/list", _BOTH, Page, "tools", "static"),
        Method("server/discover", (MODERN,), cache="static"),
        Method("initialize", (LEGACY,), Initialize),
        Method("ping", (LEGACY,)),
        Method("logging/setLevel", (LEGACY,), SetLevel, "logging"),
        Method("resources/list", _BOTH, Page, "resources", "fresh"),
        Method("resources/templates/list", _BOTH, Page, "resources", "static"),
        Method("resources/read", _BOTH, Read, "resources", "fresh", "uri"),
        Method("resources/subscribe", (LEGACY,), Subscribe, "resources"),
        Method("resources/unsubscribe", (LEGACY,), Subscribe, "resources"),
        Method(LISTEN, (MODERN,), Listen, "resources"),
        Method("skills/list", _BOTH, Page, "skills", "static"),
        Method("skills/get", _BOTH, Subscribe, "skills", "static"),
        Method("prompts/list", _BOTH, Page, "prompts", "static"),
        Method("prompts/get", _BOTH, Get, "prompts", named="name"),
        Method("completion/complete", _BOTH, Complete, "completions"),
    )
}


def knows(era: Era, method: str) -> bool:
    return method in METHODS and era in METHODS[method].eras


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
    era: Era
    actor: str = ANONYMOUS
    level: str | None = None
    route: ToolRoute | None = None
    emit: Emit | None = None
    caller: Caller = ANONYMOUS_CALLER
    dispatch: "Dispatch" = cast("Dispatch", None)


_decode_call = msgspec.json.Decoder(CallEnvelope).decode
_decode_params = msgspec.json.Decoder(Params).decode
_decoders = {
    era.name: {name: msgspec.json.Decoder(method.params).decode for name, method in METHODS.items() if knows(era, name)}
    for era in (LEGACY, MODERN)
}


def open_message(body: bytes, limits: Limits) -> Message:
    """Return the message in `body`; raises ProtocolError with -32700 or -32600."""
    if too_much := excess(body, limits):
        raise ProtocolError(PARSE_ERROR, too_much.capitalize())
    try:
        if not body.isascii():
            body.decode()  # the decoder does not check the encoding of raw fields
        try:
            return _decode_call(body)
        except msgspec.ValidationError:
            return _open_other(body)
    except UNREADABLE:
        text = whole_characters(body)
        if text != body:
            return open_message(text, limits)
        raise ProtocolError(PARSE_ERROR, "Parse error") from None


def id_of_unreadable(body: bytes) -> bytes:
    """Return the encoded id of a request that is no valid message, so that its client does not wait for an answer; null
    if it stands neither at its beginning nor at its end.
    """
    if b'"method"' not in body:  # a damaged response has an id of this server's
        return b"null"
    match = _FIRST_ID.match(body[:ID_ROOM].decode("latin-1")) or _LAST_ID.search(body[-ID_ROOM:].decode("latin-1"))
    return match[1].encode() if match else b"null"


def _open_other(body: bytes) -> Envelope:
    """Return any other message; raises ProtocolError, and what the decoder raises for no JSON."""
    for kind in (Envelope, Raw):  # Raw accepts all JSON, which separates a wrong shape from a parse error
        try:
            message = msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError:
            continue
        if isinstance(message, Envelope):
            return message
    raise ProtocolError(INVALID_REQUEST, "The body must be one JSON-RPC request or notification object")


def open_params(era: Era, method: str, raw: Raw | Call) -> tuple[Params, ProtocolError | None]:
    """Return the parameters of a request, typed by its method, or only the common ones and the error in the others."""
    if isinstance(raw, Call):
        return raw, None
    decode = _decoders[era.name].get(method, _decode_params)
    text = bytes(raw)
    if text in (b"", b"null"):
        text = b"{}"
    try:
        return decode(text), None
    except UNREADABLE as error:
        # The decoder's message names the field and not its value.
        is_malformed = not isinstance(error, msgspec.ValidationError)
        reason = "not valid JSON" if is_malformed else json_terms(str(error)).replace("`$.", "`")
        wrong = ProtocolError(INVALID_PARAMS, f"Invalid params: {reason}")
    if text[:1] != b"{":
        raise ProtocolError(INVALID_REQUEST, "params must be an object")
    try:
        return _decode_params(text), wrong
    except UNREADABLE:
        raise wrong from None


def encoded_id(id_: int | str) -> bytes:
    """Return an id as JSON, whatever its size."""
    return b"%d" % id_ if isinstance(id_, int) else msgspec.json.encode(id_)


LEGACY_LEVEL = "info"
# Characters of a client's name in the history, and of those it is taken from.
_MAX_NAME = 64
_MAX_NAME_READ = 256
_CALL = b"tools/call"
_NO_META = Meta()
_LEGACY = {version.encode(): version for version in HANDSHAKE_VERSIONS}
_MODERN = {version.encode(): version for version in MODERN_VERSIONS}
Routes = Mapping[str, ToolRoute]
_ERAS: dict[bytes | None, Era] = {None: LEGACY, **dict.fromkeys(_LEGACY, LEGACY), **dict.fromkeys(_MODERN, MODERN)}
VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
_PARAM = "mcp-param-"
_ANNOTATION = "x-mcp-header"
_BLANKS = b" \t"
_WRAPPED = regex(r"=\?base64\?(.*)\?=")
_TOKEN = regex(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL = regex(r"(-?[0-9]{1,400})(?:\.0+)?")
_NAMED = {method.name: method.named for method in METHODS.values() if method.named}
_SCALARS = ("string", "integer", "boolean")
ID_ROOM = 1024  # bytes at the beginning and at the end of a message in which its id is looked for
_ID = r'"id"\s*+:\s*+(-?(?:0|[1-9][0-9]{0,17})|"[ !#-\[\]-~]{0,256}")\s*+'
_FIRST_ID = regex(r"\s*+\{[^{}\[\]]*?" + _ID + r"[,}]")
_LAST_ID = regex(r",\s*+" + _ID + r",?\s*+\}\s*+\Z")


@lru_cache(maxsize=64)
def version_and_era(version: bytes | None) -> tuple[bytes | None, Era]:
    """Return the protocol version in a request's header, and its era; the first revisions had no such header."""
    if version is not None and version not in _ERAS:
        version = version.strip(b" \t")  # some HTTP parsers keep trailing whitespace
    return version, _ERAS.get(version, MODERN)


def is_request(envelope: Envelope, era: Era, version: bytes | None) -> bool:
    """False for a notification or a legacy response, which get 202; raises ProtocolError for anything else."""
    if envelope.method is UNSET:
        if era is MODERN or not (bytes(envelope.result) or bytes(envelope.error)):
            raise ProtocolError(INVALID_REQUEST, "The body must be one JSON-RPC request or notification object")
        return False
    if envelope.id is UNSET and era is MODERN and version not in _MODERN:
        raise unsupported(version)
    return envelope.id is not UNSET


def over_http(
    envelope: Message,
    id_: bytes,
    era: Era,
    version: bytes | None,
    raw: Sequence[Header],
    headers: Headers,
    routes: Routes,
) -> Inbound:
    """Return a request by HTTP POST; raises ProtocolError if its headers and its body disagree."""
    method: Any = envelope.method
    params, wrong = (
        (envelope.params, None) if isinstance(envelope, CallEnvelope) else open_params(era, method, envelope.params)
    )
    meta = params.meta or _NO_META
    route = routes.get(params.name) if isinstance(params, Call) else None
    actor, level = ANONYMOUS, LEGACY_LEVEL
    parameters = route.header_params if route is not None else ()
    if len(raw) != len(headers):
        check_single(raw, parameters if era is MODERN else ())
    if era is MODERN:
        if meta.capabilities is UNSET or version not in _MODERN or _MODERN[version] != meta.version:
            _check_modern(meta, version)
        plain = route is not None and not parameters and headers.get(NAME) == route.header
        if not plain or headers.get(METHOD) != _CALL:
            check(headers, method, params, parameters)
        level = meta.level
        if meta.client is not None:
            actor = actor_name(meta.client.name)
    elif meta.version is not UNSET and (version is None or _LEGACY[version] != meta.version):
        raise ProtocolError(HEADER_MISMATCH, "The mcp-protocol-version header does not match the version in _meta")
    if wrong is not None:
        raise wrong
    return Inbound(id_, method, params, era, actor, level, route)


def over_stdio(envelope: Message, id_: bytes, actor: str, level: str | None, routes: Routes) -> Inbound:
    """Return a request over stdio, if only its `_meta` names the era."""
    method: Any = envelope.method
    meta = open_params(LEGACY, "", envelope.params)[0].meta or _NO_META
    if meta.version is UNSET:
        era = LEGACY
    else:
        era, level = MODERN, meta.level
        _check_modern(meta, meta.version.encode())
        actor = actor if meta.client is None else actor_name(meta.client.name)
    params, wrong = open_params(era, method, envelope.params)
    if wrong is not None:
        raise wrong
    route = routes.get(params.name) if isinstance(params, Call) else None
    return Inbound(id_, method, params, era, actor, level, route)


def _check_modern(meta: Meta, version: bytes | None) -> None:
    if meta.version is UNSET or meta.capabilities is UNSET:
        if version not in _MODERN:
            raise unsupported(version)
        pairs = ((VERSION_KEY, meta.version), (CAPABILITIES_KEY, meta.capabilities))
        lacking = ", ".join(key for key, value in pairs if value is UNSET)
        raise ProtocolError(INVALID_PARAMS, f"params._meta lacks {lacking}")
    era = _MODERN.get(version or b"")
    if era != meta.version:
        if era is not None or meta.version.encode() != version:
            raise ProtocolError(HEADER_MISMATCH, "The mcp-protocol-version header does not match the version in _meta")
        raise unsupported(version)


def unsupported(version: bytes | None) -> ProtocolError:
    requested_version = (version or b"").decode("latin-1")
    data = {"supported": list(MODERN_VERSIONS), "requested": requested_version}
    return ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def actor_name(name: str) -> str:
    """Return a client's name as the history stores it: printable and short."""
    return _printable(name if len(name) <= _MAX_NAME_READ else name[:_MAX_NAME_READ])


@lru_cache(maxsize=256)
def _printable(name: str) -> str:
    return "".join([letter for letter in name if letter.isprintable()])[:_MAX_NAME] or ANONYMOUS


def check_single(raw: Sequence[Header], header_params: Sequence[HeaderParam] = ()) -> None:
    """Raises ProtocolError for a repeated routing header: a proxy could read the one copy and the server the other."""
    names = repeated(raw).intersection((VERSION, METHOD, NAME, *(param.header for param in header_params)))
    if names:
        raise _mismatch(min(names).decode(), "appears more than once")


def check(headers: Headers, method: str, params: Params, header_params: Sequence[HeaderParam] = ()) -> None:
    """Raises ProtocolError if Mcp-Method, Mcp-Name or an Mcp-Param header is missing or differs from the body."""
    header = headers.get(METHOD)
    if header != method.encode() and (header is None or header.strip(_BLANKS) != method.encode()):
        raise _mismatch("mcp-method", "does not match the method of the body")
    field = _NAMED.get(method)
    if field is not None:
        name: str | None = getattr(params, field, None)
        header = headers.get(NAME)
        if name is not None and not (header == name.encode() and name.isascii()) and unwrap(header) != name:
            raise _mismatch("mcp-name", f"does not match params.{field} of the body")
    if header_params and isinstance(params, Call):
        _check_arguments(headers, params, header_params)


def header_params(schema: Schema) -> tuple[HeaderParam, ...]:
    """Return the annotated arguments of an input schema; none if an annotation is invalid, since clients reject
    those.
    """
    annotated_params: list[HeaderParam] = []
    waiting: list[tuple[tuple[str, ...], Schema]] = [((), schema)]
    for path, here in waiting:  # grows during the loop
        token = here.get(_ANNOTATION)
        if token is not None:
            if not path or not _valid(token, here):
                return ()
            annotated_params.append(HeaderParam(path, f"{_PARAM}{token}".lower().encode(), here["type"]))
        waiting.extend(((*path, name), part) for name, part in here.get("properties", {}).items())
    return tuple(annotated_params) if len({param.header for param in annotated_params}) == len(annotated_params) else ()


def unwrap(value: bytes | None) -> str | None:
    """Return a header value as text, decoded from =?base64?...?=; None if it is invalid or should have been encoded."""
    if value is None or not value.isascii():
        return None
    text = value.strip(_BLANKS).decode()
    match = _WRAPPED.fullmatch(text)
    if match is None:
        return text
    try:
        data = base64.b64decode(match[1], validate=True)
        # b64decode ignores trailing bits, which would give one name several encodings.
        return data.decode() if base64.b64encode(data).decode() == match[1] else None
    except (binascii.Error, ValueError):
        return None


def _check_arguments(headers: Headers, params: Call, header_params: Sequence[HeaderParam]) -> None:
    arguments = _plain(params)
    for param in header_params:
        value = _at(arguments, param.path)
        header = headers.get(param.header)
        text = _rendered(value)
        label = param.header.decode()
        if text is None:
            if header is not None:
                raise _mismatch(label, f"is present but the argument {'.'.join(param.path)} is not")
        elif header is None:
            raise _mismatch(label, f"is missing but the argument {'.'.join(param.path)} is present")
        elif not _same(unwrap(header), text, value, param.kind):
            raise _mismatch(label, f"does not match the argument {'.'.join(param.path)}")


def _plain(params: Call) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(params.arguments, type=dict[str, Any])
    except UNREADABLE:
        return {}


def _at(arguments: Any, path: Sequence[str]) -> Any:
    for name in path:
        arguments = arguments.get(name) if hasattr(arguments, "get") else None
    return arguments


def _rendered(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _same(header: str | None, text: str, value: Any, kind: str) -> bool:
    if header is None:
        return False
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    digits = _DECIMAL.fullmatch(header) if kind == "integer" and whole and not isinstance(value, bool) else None
    return int(digits[1]) == int(value) if digits else header == text


def _valid(token: object, here: Schema) -> bool:
    return isinstance(token, str) and _TOKEN.fullmatch(token) is not None and here.get("type") in _SCALARS


def _mismatch(header: str, what: str) -> ProtocolError:
    return ProtocolError(HEADER_MISMATCH, f"The {header} header {what}")

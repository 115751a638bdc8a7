"""The era of a message, and checks that its headers and its body agree on version and client, and on the
method and name by which proxies route."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET

from kernel.calls.tools import Schema
from kernel.core.lazy_regex import regex
from kernel.core.limits import Header, Headers, repeated
from kernel.mcp.messages import (
    Call,
    CallEnvelope,
    Envelope,
    HeaderParam,
    Inbound,
    Message,
    Meta,
    Params,
    ProtocolError,
    ToolRoute,
    open_params,
)
from kernel.mcp.protocol import (
    CAPABILITIES_KEY,
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY,
    METHODS,
    MODERN,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Era,
)
from kernel.security.permissions import ANONYMOUS

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
    requested = (version or b"").decode("latin-1")
    data = {"supported": list(MODERN_VERSIONS), "requested": requested}
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
    collected: list[HeaderParam] = []
    waiting: list[tuple[tuple[str, ...], Schema]] = [((), schema)]
    for path, here in waiting:  # grows during the loop
        token = here.get(_ANNOTATION)
        if token is not None:
            if not path or not _valid(token, here):
                return ()
            collected.append(HeaderParam(path, f"{_PARAM}{token}".lower().encode(), here["type"]))
        waiting.extend(((*path, name), part) for name, part in here.get("properties", {}).items())
    return tuple(collected) if len({param.header for param in collected}) == len(collected) else ()


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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
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

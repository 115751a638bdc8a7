"""The era of a message, and checks that its headers and its body agree on version and client."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from kernel.core.limits import Header, Headers
from kernel.mcp import routing_headers
from kernel.mcp.messages import (
    Call,
    CallEnvelope,
    Envelope,
    Inbound,
    Message,
    Meta,
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
        routing_headers.check_single(raw, parameters if era is MODERN else ())
    if era is MODERN:
        if meta.capabilities is UNSET or version not in _MODERN or _MODERN[version] != meta.version:
            _check_modern(meta, version)
        plain = route is not None and not parameters and headers.get(routing_headers.NAME) == route.header
        if not plain or headers.get(routing_headers.METHOD) != _CALL:
            routing_headers.check(headers, method, params, parameters)
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

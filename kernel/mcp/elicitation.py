"""Interaction during a call: progress and log notifications, input requests, and the signed state between rounds."""

import base64
import hashlib
import hmac
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from kernel.calls.tools import InputRequired, Interaction
from kernel.core.ids import utc_now
from kernel.mcp import messages
from kernel.mcp.messages import Inbound, Object, ProtocolError

_NOTIFICATION = b'{"jsonrpc":"2.0","method":"notifications/%b","params":%b}'

T = TypeVar("T")


class Emitter:
    """Turns a handler's progress and log calls into notifications; drops those that the client did not request."""

    __slots__ = ("_emit", "_floor", "_last", "_logger", "_token")

    def __init__(self, emit: messages.Emit | None, token: str | int | None, level: str | None, logger: str) -> None:
        self._emit = emit
        self._token = None if token is None else msgspec.Raw(messages.encoded_id(token))
        self._floor = len(messages.LEVELS) if level is None else messages.LEVELS[level]
        self._logger = logger
        self._last = -math.inf

    def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        """Sends progress; a value that does not increase is dropped, since the protocol requires an increase."""
        if self._emit is None or self._token is None or not self._last < value < math.inf:
            return
        self._last = value
        params: Object = {"progressToken": self._token, "progress": value}
        if total is not None and math.isfinite(total):
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._emit(_NOTIFICATION % (b"progress", msgspec.json.encode(params)))

    def log(self, level: str, data: object) -> None:
        """Sends a log message at one of the eight levels; `data` is anything that JSON can hold."""
        if self._emit is not None and messages.LEVELS[level] >= self._floor:
            params = {"level": level, "logger": self._logger, "data": data}
            self._emit(_NOTIFICATION % (b"message", msgspec.json.encode(params)))


class Elicitation:
    """The rounds of one request: the client's responses and the handler's input requests."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def interaction(self, inbound: Inbound, logger: str, request: str) -> Interaction:
        """Return the interaction of this round; raises ProtocolError if the state was not issued for `request`."""
        meta: messages.Meta = inbound.params.meta or messages.Meta()
        emitter = Emitter(inbound.emit, meta.token, inbound.level, logger)
        if inbound.era is messages.LEGACY:
            return Interaction({}, None, {}, emitter.progress, emitter.log)
        answers = _decoded(inbound.params.answers, dict[str, Object], "inputResponses")
        token = _decoded(inbound.params.state, str, "requestState")
        capabilities = msgspec.to_builtins(meta.capabilities)
        return Interaction(answers or {}, self._state(token, request), capabilities, emitter.progress, emitter.log)

    def input_required(self, inbound: Inbound, ask: InputRequired, request: str) -> Object | ProtocolError:
        """Return the fields of an `input_required` result, or the error if the client lacks a capability for it."""
        lacking = missing(ask.inputs, inbound.params.meta.capabilities)
        if lacking:
            message = f"The client must declare: {', '.join(lacking)}"
            return ProtocolError(messages.MISSING_CAPABILITY, message, {"requiredCapabilities": lacking})
        fields: Object = {"inputRequests": ask.inputs} if ask.inputs else {}
        if ask.state is not None or not fields:
            fields["requestState"] = seal(self._key, ask.state, request, utc_now())
        return fields

    def _state(self, token: str | None, request: str) -> Any:
        if token is None:
            return None
        try:
            return unseal(self._key, token, request, utc_now())
        except InvalidState:
            raise ProtocolError(messages.INVALID_PARAMS, "Invalid or expired requestState") from None


def missing(inputs: Mapping[str, Mapping[str, Any]], capabilities: messages.Capabilities) -> Object:
    """Return the capabilities these input requests need and the client did not declare, as an object of objects."""
    lacking: dict[str, dict[str, Object]] = {}
    for question in inputs.values():
        capability, part = _need(question)
        if not _offers(capabilities, capability, part):
            lacking.setdefault(capability, {}).update({part: {}} if part else {})
    return lacking


def _need(question: Mapping[str, Any]) -> tuple[str, str]:
    method, params = question["method"], question.get("params", {})
    if method == "elicitation/create":
        return "elicitation", params.get("mode", "form")
    if method == "sampling/createMessage":
        return "sampling", "tools" if "tools" in params else ""
    return "roots", ""


def _offers(capabilities: messages.Capabilities, capability: str, part: str) -> bool:
    modes = getattr(capabilities, capability)
    if modes is None or not part:
        return modes is not None
    if part == "form" and modes.url is None:  # an empty `elicitation` object declares `form`
        return True
    return getattr(modes, part) is not None


def _decoded(raw: msgspec.Raw, kind: type[T], name: str) -> T | None:
    if raw == messages.ABSENT:
        return None
    try:
        return msgspec.json.decode(raw, type=kind | None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProtocolError(messages.INVALID_PARAMS, f"Invalid params: {name} is malformed") from None


# A user needs time to fill in a form; a replayed state must expire soon after.
LIFETIME = timedelta(minutes=10)
# Servers behind one address share the key and not the clock.
_CLOCK_SKEW = timedelta(minutes=1)
_PREFIX = "v1"


class InvalidState(Exception):
    """A state that was not signed by this server, or for another request, or is too old; the message is for the log."""


class Claims(msgspec.Struct):
    """The content of a sealed state: when and for which request it was issued, and the state."""

    at: str
    purpose: str
    state: Any


def purpose(actor: str, method: str, name: str, arguments: bytes) -> str:
    """Return the fingerprint of a request, equal in all of its rounds; key order and whitespace do not count."""
    digest = hashlib.sha256()
    for part in (actor.encode(), method.encode(), name.encode(), _canonical(arguments)):
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()


def seal(key: bytes, state: object, request: str, now: str) -> str:
    """Return `state` as a token, signed and not encrypted: the client can read it."""
    payload = _text(msgspec.json.encode(Claims(now, request, state)))
    return f"{_PREFIX}.{payload}.{_sign(key, payload)}"


def unseal(key: bytes, token: str, request: str, now: str) -> Any:
    """Return the state of a token that `seal` made for the same request within `LIFETIME`; raises InvalidState."""
    prefix, _, rest = token.partition(".")
    payload, _, signature = rest.partition(".")
    if prefix != _PREFIX or not token.isascii() or not hmac.compare_digest(signature, _sign(key, payload)):
        raise InvalidState("signature")
    try:
        claims = msgspec.json.decode(_bytes(payload), type=Claims)
        age = datetime.fromisoformat(now) - datetime.fromisoformat(claims.at)
    except (msgspec.DecodeError, ValueError):
        raise InvalidState("payload") from None
    if not hmac.compare_digest(claims.purpose, request):
        raise InvalidState("purpose")
    if not -_CLOCK_SKEW <= age <= LIFETIME:
        raise InvalidState("age")
    return claims.state


def _canonical(arguments: bytes) -> bytes:
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted")
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError):
        return arguments


def _sign(key: bytes, payload: str) -> str:
    return _text(hmac.digest(key, f"{_PREFIX}.{payload}".encode(), "sha256"))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))

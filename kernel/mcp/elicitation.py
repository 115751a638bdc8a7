"""Interaction during a call: progress and log notifications, input requests, and the signed state between rounds."""

import base64
import hashlib
import hmac
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kernel.ids import utc_now
from kernel.mcp.messages import ABSENT, Capabilities, Emit, Inbound, Meta, Object, ProtocolError, encoded_id
from kernel.mcp.protocol import INVALID_PARAMS, LEGACY, LEVELS, MISSING_CAPABILITY
from kernel.tools import InputRequired, Interaction

_NOTE = b'{"jsonrpc":"2.0","method":"notifications/%b","params":%b}'


class Emitter:
    """Turns a handler's progress and log calls into notifications, dropping what the client did not ask for."""

    __slots__ = ("_emit", "_floor", "_last", "_logger", "_token")

    def __init__(self, emit: Emit | None, token: str | int | None, level: str | None, logger: str) -> None:
        self._emit = emit
        self._token = None if token is None else msgspec.Raw(encoded_id(token))
        self._floor = len(LEVELS) if level is None else LEVELS[level]
        self._logger = logger
        self._last = -math.inf

    def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        """Says how far the work is; a value that does not grow is not sent, since clients rely on growth."""
        if self._emit is None or self._token is None or not self._last < value < math.inf:
            return
        self._last = value
        said: Object = {"progressToken": self._token, "progress": value}
        if total is not None and math.isfinite(total):
            said["total"] = total
        if message is not None:
            said["message"] = message
        self._emit(_NOTE % (b"progress", msgspec.json.encode(said)))

    def log(self, level: str, data: Any) -> None:
        """Sends a line of JSON-able data at one of the eight levels."""
        if self._emit is not None and LEVELS[level] >= self._floor:
            line = {"level": level, "logger": self._logger, "data": data}
            self._emit(_NOTE % (b"message", msgspec.json.encode(line)))


class Elicitation:
    """The rounds of one request: what the client answered goes to the handler, what the handler asks to the client."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def turn(self, inbound: Inbound, logger: str, belongs: str) -> Interaction:
        """What the handler gets in this round; raises Refused where the state is not what we sent for `belongs`."""
        meta: Meta = inbound.params.meta or Meta()
        emitter = Emitter(inbound.emit, meta.token, inbound.level, logger)
        if inbound.era is LEGACY:
            return Interaction({}, None, {}, emitter.progress, emitter.log)
        answers = _decoded(inbound.params.answers, dict[str, Object], "inputResponses")
        token = _decoded(inbound.params.state, str, "requestState")
        capabilities = msgspec.to_builtins(meta.capabilities)
        return Interaction(answers or {}, self._state(token, belongs), capabilities, emitter.progress, emitter.log)

    def question(self, inbound: Inbound, ask: InputRequired, belongs: str) -> Object | ProtocolError:
        """The fields of an `input_required` result, or the refusal where the client cannot be asked such things."""
        lacking = missing(ask.inputs, inbound.params.meta.capabilities)
        if lacking:
            message = f"The client must declare: {', '.join(lacking)}"
            return ProtocolError(MISSING_CAPABILITY, message, {"requiredCapabilities": lacking})
        asked: Object = {"inputRequests": ask.inputs} if ask.inputs else {}
        if ask.state is not None or not asked:
            asked["requestState"] = seal(self._key, ask.state, belongs, utc_now())
        return asked

    def _state(self, token: str | None, belongs: str) -> Any:
        if token is None:
            return None
        try:
            return unseal(self._key, token, belongs, utc_now())
        except Broken:
            raise ProtocolError(INVALID_PARAMS, "Invalid or expired requestState") from None


def missing(inputs: Mapping[str, Mapping[str, Any]], offered: Capabilities) -> Object:
    """The capabilities these input requests need and the client did not declare, as an object of objects."""
    lacking: dict[str, dict[str, Object]] = {}
    for wanted in inputs.values():
        capability, part = _need(wanted)
        if not _offers(offered, capability, part):
            lacking.setdefault(capability, {}).update({part: {}} if part else {})
    return lacking


def _need(wanted: Mapping[str, Any]) -> tuple[str, str]:
    method, params = wanted["method"], wanted.get("params", {})
    if method == "elicitation/create":
        return "elicitation", params.get("mode", "form")
    if method == "sampling/createMessage":
        return "sampling", "tools" if "tools" in params else ""
    return "roots", ""


def _offers(offered: Capabilities, capability: str, part: str) -> bool:
    found = getattr(offered, capability)
    if found is None or not part:
        return found is not None
    if part == "form" and found.url is None:  # an empty `elicitation` object is how a client says "form"
        return True
    return getattr(found, part) is not None


def _decoded(raw: msgspec.Raw, kind: Any, name: str) -> Any:
    if raw == ABSENT:
        return None
    try:
        return msgspec.json.decode(raw, type=kind | None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ProtocolError(INVALID_PARAMS, f"Invalid params: {name} is malformed") from None


LIFETIME = timedelta(minutes=10)
_SKEW = timedelta(minutes=1)
_PREFIX = "v1"


class Broken(Exception):
    """The state is not ours, not for this request, or too old; the message is for the log alone."""


class Claims(msgspec.Struct):
    """What a sealed state says: when it was issued, what it belongs to, and the state itself."""

    at: str
    purpose: str
    state: Any


def purpose(actor: str, method: str, name: str, arguments: bytes) -> str:
    """The fingerprint of a request, the same for every round of it: key order and blanks do not count."""
    digest = hashlib.sha256()
    for part in (actor.encode(), method.encode(), name.encode(), _canonical(arguments)):
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()


def seal(key: bytes, state: Any, belongs: str, now: str) -> str:
    """`state` as a token. The client can read it: it is signed, not encrypted."""
    payload = _text(msgspec.json.encode(Claims(now, belongs, state)))
    return f"{_PREFIX}.{payload}.{_sign(key, payload)}"


def unseal(key: bytes, token: str, belongs: str, now: str) -> Any:
    """The state of a token that `seal` made for the same purpose not long ago; raises Broken."""
    prefix, _, rest = token.partition(".")
    payload, _, signature = rest.partition(".")
    if prefix != _PREFIX or not token.isascii() or not hmac.compare_digest(signature, _sign(key, payload)):
        raise Broken("signature")
    try:
        claims = msgspec.json.decode(_bytes(payload), type=Claims)
        age = datetime.fromisoformat(now) - datetime.fromisoformat(claims.at)
    except (msgspec.DecodeError, ValueError):
        raise Broken("payload") from None
    if not hmac.compare_digest(claims.purpose, belongs):
        raise Broken("purpose")
    if not -_SKEW <= age <= LIFETIME:
        raise Broken("age")
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

"""State that travels through the client and back: signed, bound to one request of one actor, and short-lived."""

import base64
import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Any

import msgspec

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

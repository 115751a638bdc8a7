"""Sessions of the console: a signed cookie that names a key and never holds it."""

import hashlib
import hmac
import secrets
import time
from typing import NamedTuple

from kernel.lazy_regex import regex

COOKIE = "quipu_ui"
_SECONDS = 12 * 3600  # since the session was last renewed
_RENEWED_AFTER = 3600  # seconds, so that a session in use does not end
_RANDOM_BYTES = 32
_VALUE = regex(r"([0-9a-z]{8})\.([0-9]{1,12})\.([A-Za-z0-9_-]{43})\.([0-9a-f]{64})")


class Session(NamedTuple):
    """A session: the id of its key, and whether its cookie is to be renewed."""

    key: str
    stale: bool


class Sessions:
    """Makes and checks cookies. The secret is that of one run of the server, so that a restart ends every session."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._ended: dict[str, float] = {}  # what logged out, and when it would have ended

    def begin(self, key: str) -> str:
        """The cookie of a new session, or of one that goes on."""
        body = f"{key}.{int(time.monotonic())}.{secrets.token_urlsafe(_RANDOM_BYTES)}"
        return f"{body}.{self._sign(body)}"

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie, unless it was forged, has expired or was ended."""
        found = _VALUE.fullmatch(cookie)
        body = cookie.rpartition(".")[0]
        if found is None or not hmac.compare_digest(found[4], self._sign(body)) or found[3] in self._ended:
            return None
        age = time.monotonic() - int(found[2])
        return Session(found[1], age > _RENEWED_AFTER) if age < _SECONDS else None

    def end(self, cookie: str) -> None:
        """Ends the session of a cookie."""
        if self.find(cookie) is None:
            return
        now = time.monotonic()
        self._ended = {name: until for name, until in self._ended.items() if until > now}
        self._ended[cookie.split(".")[2]] = now + _SECONDS

    def _sign(self, body: str) -> str:
        return hmac.new(self._secret, body.encode(), hashlib.sha256).hexdigest()


def set_cookie(value: str, *, secure: bool) -> str:
    """The Set-Cookie header of a session; an empty value deletes it."""
    age = _SECONDS if value else 0
    flags = "; Secure" if secure else ""
    return f"{COOKIE}={value}; Path=/ui; Max-Age={age}; HttpOnly; SameSite=Strict{flags}"


def given_cookie(header: str) -> str:
    """The value of our cookie in a Cookie header; empty without one."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""

"""Sessions of the console: a signed cookie that names a key and never holds it, login and logout."""

import hashlib
import hmac
import secrets
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from handlers.console.requests import CONSOLE, Answer, Request, Visit, is_secure, zone_of
from kernel.core.errors import Fault
from kernel.core.lazy_regex import regex
from kernel.security.auth import Auth, Headers, Unauthenticated
from kernel.security.login_codes import LoginCodes
from kernel.security.permissions import with_client_name

COOKIE = "quipu_ui"
_SECONDS = 12 * 3600  # since the session was last renewed
_RENEWED_AFTER = 3600  # seconds, so that a session in use does not end
MOST_OF_KEY = 32
_RANDOM_BYTES = 32
_SECURE, _PLAIN = "s", "p"
_VALUE = regex(r"([0-9a-z]{8})\.([A-Za-z0-9_-]{43})\.([0-9]{1,20})\.([0-9]{1,12})\.([sp])\.([0-9a-f]{64})")


class Session(NamedTuple):
    """A session: its key, its id and when it began, which stay when it is renewed, and the age of its cookie."""

    key: str
    id: str
    begun: int  # nanoseconds of the monotonic clock, which all workers share
    age: float  # seconds
    secure: bool

    @property
    def stale(self) -> bool:
        return self.age > _RENEWED_AFTER


class _OfKey:
    """The newest sessions of one key that this process has begun or ended; all older sessions are over."""

    def __init__(self) -> None:
        self.over = -1  # no session goes on that began at this time or before it
        self._begun: dict[str, int] = {}
        self._ended: set[str] = set()

    def note(self, id_: str, start: int) -> None:
        """Keeps a session; the oldest of too many is over."""
        self._begun[id_] = start
        if len(self._begun) > MOST_OF_KEY:
            oldest = min(self._begun, key=self._begun.__getitem__)
            self.over = self._begun.pop(oldest)
            self._ended.discard(oldest)

    def end(self, id_: str, start: int) -> None:
        self._ended.add(id_)
        self.note(id_, start)

    def goes_on(self, id_: str, start: int) -> bool:
        return start > self.over and id_ not in self._ended


class Sessions:
    """Makes and checks cookies. The secret is that of one run of the server, so that a restart ends every session."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._keys = defaultdict[str, _OfKey](_OfKey)

    def begin(self, key: str, *, secure: bool) -> str:
        """Return the cookie of a new session; of too many of a key the oldest ends."""
        session = Session(key, secrets.token_urlsafe(_RANDOM_BYTES), time.monotonic_ns(), 0, secure)
        self._keys[key].note(session.id, session.begun)
        return self.cookie(session)

    def cookie(self, session: Session) -> str:
        flag = _SECURE if session.secure else _PLAIN
        body = f"{session.key}.{session.id}.{session.begun}.{int(time.monotonic())}.{flag}"
        return f"{body}.{self._sign(body)}"

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie, unless it was forged, has expired or was ended."""
        match = _VALUE.fullmatch(cookie)
        if match is None or not hmac.compare_digest(match[6], self._sign(cookie.rpartition(".")[0])):
            return None
        age = time.monotonic() - int(match[4])
        session = Session(match[1], match[2], int(match[3]), age, match[5] == _SECURE)
        of_key = self._keys.get(session.key)
        goes_on = of_key is None or of_key.goes_on(session.id, session.begun)
        return session if goes_on and age < _SECONDS else None

    def end(self, session: Session) -> None:
        self._keys[session.key].end(session.id, session.begun)

    def _sign(self, body: str) -> str:
        return hmac.new(self._secret, body.encode(), hashlib.sha256).hexdigest()


def set_cookie(value: str, *, secure: bool) -> str:
    """Return the Set-Cookie header of a session; an empty value deletes it."""
    age = _SECONDS if value else 0
    flags = "; Secure" if secure else ""
    return f"{COOKIE}={value}; Path=/ui; Max-Age={age}; HttpOnly; SameSite=Strict{flags}"


def given_cookie(header: str) -> str:
    """Return the value of our cookie in a Cookie header; empty without it."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


class Visitors:
    def __init__(self, auth: Auth, secret: bytes, codes: LoginCodes) -> None:
        self._auth = auth
        self._sessions = Sessions(secret)
        self._codes = codes
        auth.session_key = self.session_key

    def visit(self, request: Request) -> tuple[Visit, Session | None]:
        """Return the caller by the cookie, or by the Authorization header; raises Unauthenticated."""
        headers, auth, zone = request.headers, self._auth, zone_of(request.headers)
        session = self._session(headers)
        if session is not None and b"authorization" not in headers and auth.needed():
            caller = auth.caller_of_key(session.key)
            if caller is not None:
                return Visit(with_client_name(caller, CONSOLE), request.query, by_cookie=True, zone=zone), session
        return Visit(with_client_name(auth.caller(headers), CONSOLE), request.query, zone=zone), None

    def renewed(self, answer: Answer, session: Session | None) -> Answer:
        """Return the answer, with a new cookie if that of the session grows old."""
        if session is None or not session.stale:
            return answer
        cookie = set_cookie(self._sessions.cookie(session), secure=session.secure)
        return answer._replace(headers={**answer.headers, "set-cookie": cookie})

    def log_in(self, request: Request, fields: Mapping[str, str]) -> str | None:
        """Return the cookie of a new session for the key or the code of a form; None if it is none of this server's."""
        key = self._codes.take(fields["code"]) if "code" in fields else self._key_of(fields.get("key", ""))
        if key is None or self._auth.caller_of_key(key) is None:
            return None
        return self.begin(request, key)

    def begin(self, request: Request, key: str) -> str:
        """Return the cookie of a new session of a key that was just made."""
        self._auth.checked_until = 0.0  # so that the key counts from this answer on
        secure = is_secure(request.headers)
        return set_cookie(self._sessions.begin(key, secure=secure), secure=secure)

    def code(self, request: Request) -> str:
        """Return a code with which a browser logs in once, for a caller that has sent its key; raises Fault."""
        visit, _ = self.visit(request)
        if visit.by_cookie or self._auth.caller_of_key(visit.caller.key) is None:
            raise Fault("invalid", "A code is made for a key: Authorization: Bearer KEY.")
        return self._codes.make(visit.caller.key)

    def log_out(self, request: Request) -> str:
        """Ends the session; the cookie that deletes its own."""
        session = self._session(request.headers)
        if session is not None:
            self._sessions.end(session)
        return set_cookie("", secure=is_secure(request.headers))

    def session_key(self, headers: Headers) -> str:
        """Return the id of the key whose session a request has the cookie of; empty without a session."""
        session = self._session(headers)
        return "" if session is None else session.key

    def _session(self, headers: Headers) -> Session | None:
        return self._sessions.find(given_cookie(headers.get(b"cookie", b"").decode("latin-1")))

    def _key_of(self, key: str) -> str | None:
        bearer = f"Bearer {key.strip()}".encode("latin-1", "replace")
        try:
            return self._auth.caller({b"authorization": bearer}).key
        except Unauthenticated:
            return None

"""Authentication of requests by bearer key or token, and the challenge for requests without one."""

import hashlib
import logging
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from kernel.core.errors import Fault
from kernel.core.ids import utc_now
from kernel.core.lazy_regex import regex
from kernel.security import api_keys
from kernel.security.permissions import ANONYMOUS_CALLER, Caller, Permission, Reach, grant

Headers = Mapping[bytes, bytes]
METADATA = "/.well-known/oauth-protected-resource"
_RELOAD_SECONDS = 0.25  # how long a revoked key may still be accepted
_CACHED_CALLERS = 4096
_AUTHORITY = regex(r"(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?", re.I)
_NOT_QUOTABLE = regex(r"[^ !#-\[\]-~]")  # in a quoted-string of RFC 9110
_log = logging.getLogger("quipu")


class Unauthenticated(Exception):
    """A request without valid credentials; `error` is the code of RFC 6750, empty if there were no credentials."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


class CachedCaller(NamedTuple):
    """The caller of a bearer, and the ISO UTC time at which the bearer expires, empty for never."""

    caller: Caller
    expires: str


def credentials(headers: Headers) -> bytes | None:
    """Return the credentials of a request: its Authorization header, else its `x-api-key` as one."""
    header = headers.get(b"authorization")
    if header is None and (key := headers.get(b"x-api-key")) is not None:
        return b"Bearer " + key
    return header


def stamp_of(file: Path) -> tuple[int, ...]:
    """Return values that change with a file; none if it is not there."""
    try:
        status = file.stat()
    except OSError:
        return ()
    return (status.st_mtime_ns, status.st_ino, status.st_size)


class TokenVerifier(Protocol):
    def caller(self, bearer: str, /) -> CachedCaller:
        """Return the caller of a token; raises Unauthenticated."""
        ...

    def reload_if_changed(self) -> bool:
        """Return whether the verification keys have changed, so that cached callers are no longer valid."""
        ...


class Auth:
    """Callers by their Authorization header; changes of `keys.json` take effect within a quarter of a second.

    Once there was a key, be it revoked, requests need one; with `required` they always do, with `is_open` never. That
    there was one is known by the file, by `had_keys`, and by the file of before; `on_keys` is called at the first.
    """

    def __init__(
        self,
        data: Path,
        *,
        required: bool = False,
        is_open: bool = False,
        tokens: TokenVerifier | None = None,
        had_keys: bool = False,
        on_keys: Callable[[], object] = lambda: None,
    ) -> None:
        self._file = data / api_keys.FILE
        self._data = data
        self._always = required
        self._is_open = is_open
        self._tokens = tokens
        self._had_keys = had_keys
        self._on_keys = on_keys
        self._stamp: tuple[int, ...] | None = None
        self._keys: Mapping[str, api_keys.Key] = {}
        self._known: dict[bytes, CachedCaller] = {}
        self.checked_until = 0.0  # the monotonic time from which the file must be looked at again
        self.required = True  # whether requests need a key, as of the last look at the file
        self.session_key: Callable[[Headers], str] = lambda _headers: ""  # the key of the console's session, by cookie

    def needed(self) -> bool:
        if time.monotonic() >= self.checked_until:
            self._reload_if_changed()
        return self.required

    def caller(self, headers: Headers) -> Caller:
        if time.monotonic() >= self.checked_until:
            self._reload_if_changed()
        header = headers.get(b"authorization")
        if header is None:
            if self.required:
                raise Unauthenticated("", "A key is needed: Authorization: Bearer KEY")
            return ANONYMOUS_CALLER
        # The cache is keyed by digest, so that no comparison touches the bearer itself.
        digest = hashlib.sha256(header).digest()
        entry = self._known.get(digest) or self._authenticate(header, digest)
        return entry.caller

    def caller_of_key(self, id_: str) -> Caller | None:
        """Return the caller of a key that was authenticated before, if the key is still active, and no client's: its
        tokens end within an hour, and open no session.
        """
        if time.monotonic() >= self.checked_until:
            self._reload_if_changed()
        key = self._keys.get(id_)
        return None if key is None or key.login or key.state(utc_now()) != "active" else _caller(key)

    def hash_of_key(self, id_: str) -> str:
        """Return the stored hash of an active key, empty for any other id."""
        if time.monotonic() >= self.checked_until:
            self._reload_if_changed()
        key = self._keys.get(id_)
        return "" if key is None or key.state(utc_now()) != "active" else key.hash

    def key_id(self, headers: Headers) -> str:
        """Return the id of the key, token or session of a request; empty if it has no valid credential."""
        header = credentials(headers)
        if header is None:
            session = self.caller_of_key(self.session_key(headers))
            return "" if session is None else session.key
        try:
            return self.caller({b"authorization": header}).key
        except Unauthenticated:
            return ""

    def _authenticate(self, header: bytes, digest: bytes) -> CachedCaller:
        scheme, _, bearer = header.decode("latin-1").partition(" ")
        bearer = bearer.strip()
        if scheme.lower() != "bearer" or not bearer:
            return self._anonymous("", "A key is needed: Authorization: Bearer KEY")
        now = utc_now()
        entry = self._by_key(bearer, now) if bearer.startswith(api_keys.PREFIX) else self._by_token(bearer)
        if len(self._known) >= _CACHED_CALLERS:
            self._known.clear()
        self._known[digest] = entry
        return entry

    def _by_key(self, bearer: str, now: str) -> CachedCaller:
        key = self._keys.get(api_keys.parse(bearer))
        if not api_keys.matches(bearer, key) or key is None or key.state(now) != "active":
            raise Unauthenticated("invalid_token", "This key is unknown, has expired or was revoked")
        if key.login is not None and not now < key.login.fresh:
            raise Unauthenticated("invalid_token", "This token has expired")
        ends = (end for end in (key.expires, key.login.fresh if key.login else "") if end)
        return CachedCaller(_caller(key), min(ends, default=""))

    def _by_token(self, bearer: str) -> CachedCaller:
        if self._tokens is None:
            return self._anonymous("invalid_token", "This is no key of this server")
        return self._tokens.caller(bearer)

    def _anonymous(self, error: str, message: str) -> CachedCaller:
        """Return an unusable Authorization header counts as anonymous if keys are optional: it may be meant for a
        proxy.
        """
        if self.required:
            raise Unauthenticated(error, message)
        return CachedCaller(ANONYMOUS_CALLER, "")

    def _reload_if_changed(self) -> None:
        """Reads changed files, and drops cached callers that have expired."""
        self.checked_until = time.monotonic() + _RELOAD_SECONDS
        stamp = stamp_of(self._file)
        if stamp != self._stamp:
            self._stamp = stamp
            self._known.clear()
            self._read_keys()
        now = utc_now()
        new_tokens = self._tokens is not None and self._tokens.reload_if_changed()
        if new_tokens or any(entry.expires and entry.expires <= now for entry in self._known.values()):
            self._known.clear()

    def _read_keys(self) -> None:
        try:
            keys = api_keys.read(self._data)
        except Fault as fault:
            _log.error("%s Every key is refused until then.", fault.message)
            self._keys, self.required = {}, not self._is_open
            return
        self._keys = {key.id: key for key in keys}
        lost_keys = not self._stamp and self._had_keys
        if lost_keys:
            _log.error(
                "%s is missing, so every request is refused: `quipu key create --scope admin` makes a key.",
                api_keys.FILE,
            )
        if keys and not self._had_keys:
            self._had_keys = True
            self._on_keys()
        self.required = not self._is_open and (self._always or lost_keys or bool(keys))


def _caller(key: api_keys.Key) -> Caller:
    reach = Reach(frozenset(key.read), frozenset(key.write)) if key.read or key.write else None
    return Caller(key.id, grant(Permission[key.scope], frozenset(key.dialects), True, reach), key.tenant, key.id)


class Challenge(NamedTuple):
    """The WWW-Authenticate header and OAuth metadata; `public` is the server's address, else the Host header is used.

    Each of `paths` is an OAuth resource of its own; all other paths belong to the resource of the whole server.
    """

    public: str = ""
    issuers: tuple[str, ...] = ()
    paths: frozenset[str] = frozenset()

    def header(self, path: str, headers: Headers, *, scope: Permission | None, error: str = "", why: str = "") -> bytes:
        """Return the value of WWW-Authenticate for a request to `path`."""
        base = self._base(headers) if self.issuers else ""
        parts = {
            "realm": "quipu",
            "resource_metadata": f"{base}{METADATA}{path if path in self.paths else ''}" if base else "",
            "scope": scope.name if scope else "",
            "error": error,
            "error_description": why,
        }
        pairs = ", ".join(f'{name}="{_NOT_QUOTABLE.sub("?", value)}"' for name, value in parts.items() if value)
        return f"Bearer {pairs}".encode("ascii")

    def metadata(self, path: str, headers: Headers) -> dict[str, object] | None:
        """Return the document of RFC 9728 for the resource at `path`, if there is one.

        MCP requires it to name an authorization server: without any, keys are made by hand, and there is no document.
        """
        if not self.issuers or (path and path not in self.paths):
            return None
        return {
            "resource": f"{self._base(headers)}{path}",
            "bearer_methods_supported": ["header"],
            "scopes_supported": [permission.name for permission in Permission],
            "resource_name": "Quipu",
            "authorization_servers": list(self.issuers),
        }

    def _base(self, headers: Headers) -> str:
        if self.public:
            return self.public
        host = headers.get(b"host", b"").strip().decode("latin-1")
        return f"http://{host}" if _AUTHORITY.fullmatch(host) else ""

"""Who a request comes from: its bearer key or token, and what the refusal of one without says."""

import hashlib
import logging
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kernel.errors import Fault
from kernel.ids import utc_now
from kernel.lazy_regex import regex
from kernel.security import api_keys
from kernel.security.permissions import ANONYMOUS_CALLER, Caller, Permission, grant

Headers = Mapping[bytes, bytes]
METADATA = "/.well-known/oauth-protected-resource"
_LOOK_SECONDS = 0.25
_REMEMBERED = 4096
_AUTHORITY = regex(r"(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?", re.I)
_UNFIT = regex(r"[^ !#-\[\]-~]")  # for a quoted string of RFC 9110
_log = logging.getLogger("quipu")


class Unauthenticated(Exception):
    """Nobody we know; `error` is RFC 6750's word for it, empty where nothing was shown. The message tells no secret."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


class CachedCaller(NamedTuple):
    """Whom a bearer belongs to, and the ISO UTC time it ends at, empty for never."""

    caller: Caller
    expires: str


class TokenVerifier(Protocol):
    """Bearers that are no keys of ours: whose they are, or Stranger; and whether that may have changed."""

    def caller(self, bearer: str, /) -> CachedCaller: ...

    def reload_if_changed(self) -> bool: ...


class Auth:
    """Callers by their Authorization header; what `keys.json` says holds a quarter of a second later.

    Once there is a key, even a revoked one, nobody gets in without; `required` asks for one from the start, `is_open`
    never does.
    """

    def __init__(
        self, data: Path, *, required: bool = False, is_open: bool = False, tokens: TokenVerifier | None = None
    ) -> None:
        self._file = data / api_keys.FILE
        self._data = data
        self._always = required
        self._is_open = is_open
        self._tokens = tokens
        self._stamp: tuple[int, ...] | None = None
        self._keys: Mapping[str, api_keys.Key] = {}
        self._known: dict[bytes, CachedCaller] = {}
        self._next = 0.0
        self._required = True

    @property
    def required(self) -> bool:
        """Whether nobody gets in without a key, as far as was seen last."""
        return self._required

    def needed(self) -> bool:
        """Whether nobody gets in without a key."""
        if time.monotonic() >= self._next:
            self._reload_if_changed()
        return self._required

    def caller(self, headers: Headers) -> Caller:
        """Who sends these headers; raises Stranger."""
        if time.monotonic() >= self._next:
            self._reload_if_changed()
        given = headers.get(b"authorization")
        if given is None:
            if self._required:
                raise Unauthenticated("", "A key is needed: Authorization: Bearer KEY")
            return ANONYMOUS_CALLER
        # What is kept to recognise a bearer by is its digest: no comparison ever touches the bearer itself.
        digest = hashlib.sha256(given).digest()
        known = self._known.get(digest) or self._authenticate(given, digest)
        return known.caller

    def key_id(self, headers: Headers) -> str:
        """The id of the key or token that came with these headers; empty for none and for a wrong one."""
        try:
            return self.caller(headers).key
        except Unauthenticated:
            return ""

    def _authenticate(self, given: bytes, digest: bytes) -> CachedCaller:
        scheme, _, bearer = given.decode("latin-1").partition(" ")
        bearer = bearer.strip()
        if scheme.lower() != "bearer" or not bearer:
            return self._anonymous("", "A key is needed: Authorization: Bearer KEY")
        now = utc_now()
        known = self._by_key(bearer, now) if bearer.startswith(api_keys.PREFIX) else self._by_token(bearer)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[digest] = known
        return known

    def _by_key(self, bearer: str, now: str) -> CachedCaller:
        key = self._keys.get(api_keys.parse(bearer))
        if not api_keys.matches(bearer, key) or key is None or key.state(now) != "active":
            raise Unauthenticated("invalid_token", "This key is unknown, has expired or was revoked")
        far = grant(Permission[key.scope], frozenset(key.dialects), True)
        return CachedCaller(Caller(key.id, far, key.tenant, key.id), key.expires)

    def _by_token(self, bearer: str) -> CachedCaller:
        if self._tokens is None:
            return self._anonymous("invalid_token", "This is no key of this server")
        return self._tokens.caller(bearer)

    def _anonymous(self, error: str, message: str) -> CachedCaller:
        """Credentials meant for somebody else, such as a proxy, make nobody less than anybody."""
        if self._required:
            raise Unauthenticated(error, message)
        return CachedCaller(ANONYMOUS_CALLER, "")

    def _reload_if_changed(self) -> None:
        """Takes in what changed in the files, and forgets who has expired."""
        self._next = time.monotonic() + _LOOK_SECONDS
        stamp = self._seen()
        if stamp != self._stamp:
            self._stamp = stamp
            self._known.clear()
            self._read()
        now = utc_now()
        other = self._tokens is not None and self._tokens.reload_if_changed()
        if other or any(known.expires and known.expires <= now for known in self._known.values()):
            self._known.clear()

    def _seen(self) -> tuple[int, ...]:
        try:
            found = self._file.stat()
        except OSError:
            return ()
        return (found.st_mtime_ns, found.st_ino, found.st_size)

    def _read(self) -> None:
        try:
            found = api_keys.read(self._data)
        except Fault as fault:
            _log.error("%s Every key is refused until then.", fault.message)
            self._keys, self._required = {}, not self._is_open
            return
        self._keys = {key.id: key for key in found}
        self._required = not self._is_open and (self._always or bool(found))


class Challenge(NamedTuple):
    """What callers are told about how to get in; `public` is the address clients know, else what their Host says.

    Each of `paths` is a resource of its own to OAuth; the rest belongs to the one of the whole server.
    """

    public: str = ""
    issuers: tuple[str, ...] = ()
    paths: frozenset[str] = frozenset()

    def header(self, path: str, headers: Headers, *, scope: Permission | None, error: str = "", why: str = "") -> bytes:
        """The value of WWW-Authenticate for a request to `path`."""
        base = self._base(headers)
        parts = {
            "realm": "quipu",
            "resource_metadata": f"{base}{METADATA}{path if path in self.paths else ''}" if base else "",
            "scope": scope.name if scope else "",
            "error": error,
            "error_description": why,
        }
        told = ", ".join(f'{name}="{_UNFIT.sub("?", value)}"' for name, value in parts.items() if value)
        return f"Bearer {told}".encode("ascii")

    def metadata(self, path: str, headers: Headers) -> dict[str, Any] | None:
        """The document of RFC 9728 for the resource at `path`, if there is one."""
        if path and path not in self.paths:
            return None
        document: dict[str, Any] = {
            "resource": f"{self._base(headers)}{path}",
            "bearer_methods_supported": ["header"],
            "scopes_supported": [right.name for right in Permission],
            "resource_name": "Quipu",
        }
        return {**document, "authorization_servers": list(self.issuers)} if self.issuers else document

    def _base(self, headers: Headers) -> str:
        if self.public:
            return self.public
        host = headers.get(b"host", b"").strip().decode("latin-1")
        return f"http://{host}" if _AUTHORITY.fullmatch(host) else ""

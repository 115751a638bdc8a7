"""Access tokens of an authorization server: JSON Web Tokens, checked by PyJWT against public keys in a file."""

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kernel import data_dir
from kernel.errors import Fault
from kernel.security.auth import CachedCaller, Unauthenticated
from kernel.security.permissions import Caller, Permission, grant

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS = frozenset({"RS256", "ES256", "EdDSA"})
_TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
_LEEWAY_SECONDS = 30
_LEAST_RSA_BITS = 2048
_LONGEST_NAME = 255
_LATEST = 253_402_300_799  # the last second that ISO 8601 can say
_log = logging.getLogger("quipu")


class Issuer(NamedTuple):
    """Whose tokens count: what they say in `iss`, the file with that server's public keys, and to whom they open what.

    `wholes` are the audiences that reach every dialect, `parts` those that reach one. `tenant` is everybody's; where it
    is empty the claim of the name `claim` tells it.
    """

    issuer: str
    keys: Path
    audiences: frozenset[str]
    dialect_audiences: Mapping[str, str]
    tenant: str = ""
    claim: str = "tenant"


class JwtVerifier:
    """The callers of an issuer's tokens; raises Fault where its keys cannot be read, or PyJWT is not installed."""

    def __init__(self, issuer: Issuer) -> None:
        try:
            import jwt
        except ImportError:
            raise Fault("invalid", "OAuth needs the extra: pip install 'quipu-memory[oauth]'") from None
        self._jwt = jwt
        self._issuer = issuer
        self._audiences = sorted(issuer.audiences | issuer.dialect_audiences.keys())
        self._stamp = self._seen()
        self._keys = self._read()

    def reload_if_changed(self) -> bool:
        """Whether the file has other keys now; what cannot be read has none."""
        stamp = self._seen()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._keys = self._read()
        except Fault as fault:
            _log.error("%s Every token is refused until then.", fault.message)
            self._keys = {}
        return True

    def caller(self, bearer: str) -> CachedCaller:
        """Whom a token was issued to; raises Stranger, without a word of what is in the token."""
        try:
            claims = self._claims(bearer)
            ends = datetime.fromtimestamp(min(int(claims["exp"]), _LATEST), UTC)
        except (self._jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise Unauthenticated("invalid_token", f"This token is not accepted: {type(error).__name__}") from None
        subject = f"oauth:{self._subject(claims)}"
        right, dialects = _permission(claims), self._dialects(claims["aud"])
        caller = Caller(subject, grant(right, dialects, True), self._tenant(claims), subject)
        return CachedCaller(caller, ends.isoformat(timespec="milliseconds").replace("+00:00", "Z"))

    def _claims(self, bearer: str) -> dict[str, Any]:
        header: Mapping[str, Any] = self._jwt.get_unverified_header(bearer)
        kind = header.get("typ") or ""
        if not isinstance(kind, str) or kind.lower() not in _TYPES or "crit" in header:
            raise self._jwt.InvalidTokenError
        key = self._key(header)
        return self._jwt.decode(
            bearer,
            key,
            algorithms=[key.algorithm_name],
            audience=self._audiences,
            issuer=self._issuer.issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )

    def _key(self, header: Mapping[str, Any]) -> "PyJWK":
        """The key a token names; one that names none may be of the only key."""
        name = header.get("kid", "" if len(self._keys) != 1 else next(iter(self._keys)))
        key = self._keys.get(name) if isinstance(name, str) else None
        if key is None or header.get("alg") != key.algorithm_name:
            raise self._jwt.InvalidKeyError
        return key

    def _dialects(self, audience: str | list[str]) -> frozenset[str]:
        given = {audience} if isinstance(audience, str) else set(audience)
        if given & self._issuer.audiences:
            return frozenset()
        return frozenset(self._issuer.dialect_audiences[name] for name in given & self._issuer.dialect_audiences.keys())

    def _subject(self, claims: Mapping[str, Any]) -> str:
        subject: str = claims["sub"]
        if not subject or len(subject) > _LONGEST_NAME or not subject.isprintable():
            raise Unauthenticated("invalid_token", "This token is not accepted: its subject cannot be written down")
        return subject

    def _tenant(self, claims: Mapping[str, Any]) -> str:
        given = self._issuer.tenant or claims.get(self._issuer.claim)
        try:
            return data_dir.tenant_name(given if isinstance(given, str) else "")
        except Fault:
            raise Unauthenticated("invalid_token", "This token is not accepted: it names no tenant") from None

    def _seen(self) -> tuple[int, ...]:
        try:
            found = self._issuer.keys.stat()
        except OSError:
            return ()
        return (found.st_mtime_ns, found.st_ino, found.st_size)

    def _read(self) -> "dict[str, PyJWK]":
        name = self._issuer.keys.name
        try:
            found: Any = json.loads(self._issuer.keys.read_bytes())
            listed = cast("Iterable[Any]", found["keys"])
            usable = [key for entry in listed if (key := self._usable(entry)) is not None]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            raise Fault("invalid", f"{name} is no set of JSON Web Keys that can be read.") from None
        known = {str(key.key_id or ""): key for key in usable}
        if not known or len(known) != len(usable):
            raise Fault("invalid", f"{name} has no public key for {', '.join(sorted(ALGORITHMS))}, or two of one name.")
        return known

    def _usable(self, entry: Any) -> "PyJWK | None":
        """A key of the set, unless it is of a kind that is not asked for; a secret one is never taken."""
        given = cast("dict[str, Any]", entry if isinstance(entry, dict) else {"k": ""})
        if {"d", "k"} & given.keys() or given.get("use", "sig") != "sig":
            return None
        try:
            key = self._jwt.PyJWK(given)
        except self._jwt.PyJWTError:
            return None
        weak = key.algorithm_name == "RS256" and key.key.key_size < _LEAST_RSA_BITS
        return None if weak or key.algorithm_name not in ALGORITHMS else key


def _permission(claims: Mapping[str, Any]) -> Permission:
    """The highest right among the scopes, which may stand behind `quipu:`."""
    given: Any = claims.get("scope", claims.get("scp", ""))
    names = given.split() if isinstance(given, str) else cast("list[Any]", given) if isinstance(given, list) else []
    known = [right for right in Permission if {right.name, f"quipu:{right.name}"} & {str(name) for name in names}]
    if not known:
        raise Unauthenticated("insufficient_scope", "This token has none of the scopes read, write and admin")
    return max(known)

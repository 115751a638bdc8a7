"""OAuth access tokens: JSON Web Tokens, verified by PyJWT with public keys from a file."""

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kernel.core import data_dir
from kernel.core.errors import Fault
from kernel.core.ordinary_files import read_bytes
from kernel.core.times import iso
from kernel.security.auth import CachedCaller, Unauthenticated, stamp_of
from kernel.security.permissions import Caller, Permission, grant

if TYPE_CHECKING:
    from jwt import PyJWK

Claims = dict[str, Any]  # decoded JSON of a token or a key

ALGORITHMS = frozenset({"RS256", "ES256", "EdDSA"})
_TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
_LEEWAY_SECONDS = 30  # clocks of issuer and server may differ by this much
_MIN_RSA_BITS = 2048  # RFC 7518, section 3.3
_MAX_SUBJECT = 255  # characters; OpenID Connect allows no more
_MAX_TIMESTAMP = 253_402_300_799  # the last second of the year 9999, the end of ISO 8601
_log = logging.getLogger("quipu")


class Issuer(NamedTuple):
    """A trusted issuer: the `iss` of its tokens, the file with its public keys, and the grant of its tokens.

    Tokens for one of `audiences` allow every dialect, those for a key of `dialect_audiences` one dialect. `tenant` is
    the tenant of all tokens; if it is empty each token names its own in the claim `claim`.
    """

    issuer: str
    keys: Path
    audiences: frozenset[str]
    dialect_audiences: Mapping[str, str]
    tenant: str = ""
    claim: str = "tenant"


class JwtVerifier:
    """Verifies the tokens of an issuer; raises Fault if its keys cannot be read, or PyJWT is not installed."""

    def __init__(self, issuer: Issuer) -> None:
        try:
            import jwt
        except ImportError:
            raise Fault("invalid", "OAuth needs the extra: pip install 'quipu-memory[oauth]'") from None
        self._jwt = jwt
        self._issuer = issuer
        self._audiences = sorted(issuer.audiences | issuer.dialect_audiences.keys())
        self._stamp = stamp_of(self._issuer.keys)
        self._keys = self._read_keys()

    def reload_if_changed(self) -> bool:
        """Return whether the file has changed, in which case the keys are read again; an unreadable file has none."""
        stamp = stamp_of(self._issuer.keys)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self._keys = self._read_keys()
        except Fault as fault:
            _log.error("%s Every token is refused until then.", fault.message)
            self._keys = {}
        return True

    def caller(self, bearer: str) -> CachedCaller:
        """Return the caller that a token was issued to; raises Unauthenticated, without quoting the token."""
        try:
            claims = self._claims(bearer)
            expires = datetime.fromtimestamp(min(int(claims["exp"]), _MAX_TIMESTAMP), UTC)
        except (self._jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise Unauthenticated("invalid_token", f"This token is not accepted: {type(error).__name__}") from None
        subject = f"oauth:{self._subject(claims)}"
        permission, dialects = _permission(claims), self._dialects(claims["aud"])
        caller = Caller(subject, grant(permission, dialects, True), self._tenant(claims), subject)
        return CachedCaller(caller, iso(expires))

    def _claims(self, bearer: str) -> Claims:
        header: Claims = self._jwt.get_unverified_header(bearer)
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

    def _key(self, header: Claims) -> "PyJWK":
        """Return the key that a token names; a token that names none can only be of a single key."""
        name = header.get("kid", "" if len(self._keys) != 1 else next(iter(self._keys)))
        key = self._keys.get(name) if isinstance(name, str) else None
        if key is None or header.get("alg") != key.algorithm_name:
            raise self._jwt.InvalidKeyError
        return key

    def _dialects(self, audience: str | list[str]) -> frozenset[str]:
        audiences = {audience} if isinstance(audience, str) else set(audience)
        if audiences & self._issuer.audiences:
            return frozenset()
        return frozenset(
            self._issuer.dialect_audiences[name] for name in audiences & self._issuer.dialect_audiences.keys()
        )

    def _subject(self, claims: Claims) -> str:
        subject: str = claims["sub"]
        if not subject or len(subject) > _MAX_SUBJECT or not subject.isprintable():
            raise Unauthenticated("invalid_token", "This token is not accepted: its subject cannot be written down")
        return subject

    def _tenant(self, claims: Claims) -> str:
        tenant = self._issuer.tenant or claims.get(self._issuer.claim)
        try:
            return data_dir.tenant_name(tenant if isinstance(tenant, str) else "")
        except Fault:
            raise Unauthenticated("invalid_token", "This token is not accepted: it names no tenant") from None

    def _read_keys(self) -> "dict[str, PyJWK]":
        name = self._issuer.keys.name
        try:
            document: Any = json.loads(read_bytes(self._issuer.keys))
            entries = cast("Iterable[object]", document["keys"])
            usable = [key for entry in entries if (key := self._usable(entry)) is not None]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            raise Fault("invalid", f"{name} is no set of JSON Web Keys that can be read.") from None
        by_id = {str(key.key_id or ""): key for key in usable}
        if not by_id or len(by_id) != len(usable):
            raise Fault("invalid", f"{name} has no public key for {', '.join(sorted(ALGORITHMS))}, or two of one name.")
        return by_id

    def _usable(self, entry: object) -> "PyJWK | None":
        """Return a public key of the set for signatures of an accepted algorithm; None for any other entry."""
        claims = cast("Claims", entry if isinstance(entry, dict) else {"k": ""})
        if {"d", "k"} & claims.keys() or claims.get("use", "sig") != "sig":
            return None
        try:
            key = self._jwt.PyJWK(claims)
        except self._jwt.PyJWTError:
            return None
        weak = key.algorithm_name == "RS256" and key.key.key_size < _MIN_RSA_BITS
        return None if weak or key.algorithm_name not in ALGORITHMS else key


def _permission(claims: Claims) -> Permission:
    scope: object = claims.get("scope", claims.get("scp", ""))
    names = scope.split() if isinstance(scope, str) else cast("list[object]", scope) if isinstance(scope, list) else []
    scopes = {str(name).removeprefix("quipu:") for name in names}
    permissions = [permission for permission in Permission if permission.name in scopes]
    if not permissions:
        raise Unauthenticated(
            "insufficient_scope", f"This token has none of the scopes {', '.join(Permission.__members__)}"
        )
    return max(permissions)

"""A small authorization server (OAuth 2.1): clients, codes and tokens for a person who consents in the console.

A grant is a key: it is listed and revoked as one, and its access token is the secret of that key. Codes and tokens are
stored as digests, and changed under the lock of the keys. A client is registered by signing its data into its id, so
that nothing of it is stored. A client whose id is the URL of its metadata is unknown, as the server's own metadata say:
to fetch them the server would have to open connections that strangers choose.
"""

import hashlib
import hmac
import os
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import msgspec

from kernel.core.data_dir import make_private
from kernel.core.lazy_regex import regex
from kernel.core.times import later
from kernel.security import api_keys
from kernel.security.api_keys import Key, Login, digest
from kernel.security.permissions import Permission

METADATA = "/.well-known/oauth-authorization-server"
AUTHORIZE, TOKEN, REGISTER, REVOKE = "/ui/authorize", "/oauth/token", "/oauth/register", "/oauth/revoke"
FILE = "sign_in.secret"
TOKEN_SECONDS = 3600
_CODE_SECONDS = 60
_SECRET_BYTES = 32
_MOST_REDEEMED = 32  # codes and refresh tokens of a grant whose second use is known
_MOST_REDIRECTS, _LONGEST_REDIRECT, _LONGEST_NAME = 8, 512, 64
_GRANT_TOKEN = regex(r"(?:quipur|code)_([0-9a-z]{8})_[A-Za-z0-9_-]{43}")
_CHALLENGE, _VERIFIER = regex(r"[A-Za-z0-9_-]{43}"), regex(r"[A-Za-z0-9._~-]{43,128}")
_SCHEME = regex(r"[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)*")
_NO_SCHEMES = frozenset(
    {"javascript", "data", "vbscript", "file", "blob", "about", "filesystem", "view-source", "ws", "wss"}
)
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class OAuthError(Exception):
    """A refusal of RFC 6749: its code, and the words for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Client(msgspec.Struct, frozen=True):
    """A registered client, as its id holds it."""

    name: str
    redirects: tuple[str, ...]


class Registration(msgspec.Struct):
    """The fields of RFC 7591 that count; others are ignored."""

    redirect_uris: list[str]
    client_name: str = ""


class AuthorizationRequest(msgspec.Struct, frozen=True):
    """A checked request of a client for a grant; `dialects` are those of the resource, none for all."""

    client_id: str
    client: Client
    redirect: str
    challenge: str
    state: str
    dialects: tuple[str, ...]


class SignIn:
    """The authorization server at a public address, over the keys of a data directory."""

    def __init__(self, data: Path, issuer: str, resources: frozenset[str]) -> None:
        self._data = data
        self.issuer = issuer
        self._resources = {issuer: "", **{issuer + path: path for path in resources}}

    def metadata(self) -> dict[str, object]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": self.issuer + AUTHORIZE,
            "token_endpoint": self.issuer + TOKEN,
            "registration_endpoint": self.issuer + REGISTER,
            "revocation_endpoint": self.issuer + REVOKE,
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": False,
            "scopes_supported": ["read", "write"],
        }

    def register(self, body: bytes) -> dict[str, object]:
        """Return a client's registration (RFC 7591); raises OAuthError."""
        try:
            wish = msgspec.json.decode(body, type=Registration)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise OAuthError("invalid_client_metadata", "redirect_uris must be a list of URIs.") from None
        if not 0 < len(wish.redirect_uris) <= _MOST_REDIRECTS or not all(map(_is_redirect, wish.redirect_uris)):
            message = f"redirect_uris must be 1 to {_MOST_REDIRECTS} URIs: https, http of this machine, or of an app."
            raise OAuthError("invalid_redirect_uri", message)
        name = "".join(letter for letter in wish.client_name if letter.isprintable())[:_LONGEST_NAME].strip()
        client = Client(name or "A client without a name", tuple(wish.redirect_uris))
        return {
            "client_id": self._sign(msgspec.json.encode(client)),
            "client_name": client.name,
            "redirect_uris": client.redirects,
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        }

    def request_of(self, query: Mapping[str, str]) -> AuthorizationRequest:
        """Return a request for consent; raises OAuthError, which goes to the person and to no URI of the request."""
        client_id = query.get("client_id", "")
        client = self._client(client_id)
        if client is None:
            remedy = f" Documents at a URL are not fetched: register at {REGISTER}." if "://" in client_id else ""
            raise OAuthError("invalid_client", f"client_id is none that this server has registered.{remedy}")
        redirect = query.get("redirect_uri", "")
        if not any(_matches(redirect, uri) for uri in client.redirects):
            raise OAuthError("invalid_request", "redirect_uri is none that this client has registered.")
        if query.get("response_type") != "code":
            raise OAuthError("unsupported_response_type", "response_type must be code.")
        challenge = query.get("code_challenge", "")
        if query.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
            raise OAuthError("invalid_request", "code_challenge must be given, and its method be S256.")
        state = query.get("state", "")
        return AuthorizationRequest(client_id, client, redirect, challenge, state, self._dialects(query))

    def answer(self, request: AuthorizationRequest, **parameters: str) -> str:
        """Return the URI that an answer goes to, with the issuer (RFC 9207)."""
        pairs = urlencode({**parameters, **({"state": request.state} if request.state else {}), "iss": self.issuer})
        base, hash_, _ = request.redirect.partition("#")
        assert not hash_
        return f"{base}{'&' if '?' in base else '?'}{pairs}"

    def consent(self, request: AuthorizationRequest, draft: Key, by: str, now: str) -> str:
        """Stores a grant of the key `by`, which waits for its client; returns the code."""
        code: list[str] = []

        def add(keys: list[Key]) -> list[Key]:
            id_ = api_keys.fresh_id({key.id for key in keys})
            code.append(_secret("code", id_))
            login = Login(
                client=request.client.name,
                client_id=digest(request.client_id),
                redirect=request.redirect,
                challenge=request.challenge,
                dialects=request.dialects,
                code=digest(code[0]),
                until=later(now, timedelta(seconds=_CODE_SECONDS)),
                by=by,
            )
            left = [key for key in keys if key.login is None or key.hash or key.revoked or key.login.until > now]
            return [*left, msgspec.structs.replace(draft, id=id_, login=login)]

        api_keys.change(self._data, add)
        return code[0]

    def redeem(self, form: Mapping[str, str], now: str) -> dict[str, object]:
        """Return the tokens for a code, once, or for a refresh token; raises OAuthError."""
        kind = form.get("grant_type", "")
        if kind not in {"authorization_code", "refresh_token"}:
            raise OAuthError("unsupported_grant_type", "grant_type must be authorization_code or refresh_token.")
        dialects = self._dialects(form) if form.get("resource") else None
        scopes = [Permission[name] for name in form.get("scope", "").split() if name in Permission.__members__]
        secret = form.get("code" if kind == "authorization_code" else "refresh_token", "")

        def check(key: Key, login: Login) -> bool:
            """Return whether this client may use the secret; raises OAuthError for more than was granted."""
            fits = digest(form.get("client_id", "")) == login.client_id
            if kind == "refresh_token":
                fits = fits and _same(secret, login.refresh)
            else:
                fits = fits and login.redirect == form.get("redirect_uri", "") and now < login.until
                fits = fits and _verifies(form.get("code_verifier", ""), login.challenge) and _same(secret, login.code)
            if fits and dialects not in {None, login.dialects}:
                raise OAuthError("invalid_target", "resource is not the one that was granted.")
            if fits and max(scopes, default=Permission.read) > Permission[key.scope]:
                raise OAuthError("invalid_scope", f"scope was granted as {key.scope}.")
            return fits

        return self._rotate(secret, kind, check, now)

    def _rotate(self, secret: str, kind: str, check: Callable[[Key, Login], bool], now: str) -> dict[str, object]:
        """Return new tokens in the place of `secret`; a second use, or a wrong one of a code, revokes the grant."""
        tokens: dict[str, object] = {}

        def rotated(key: Key, login: Login) -> Key:
            used = digest(secret)
            if key.state(now) != "active":
                return key
            if used in login.redeemed or (kind == "authorization_code" and not check(key, login)):
                return api_keys.revoked(key, now)
            if not check(key, login):
                return key
            access, refresh = api_keys.secret_of(key.id), _secret("quipur", key.id)
            fresh = later(now, timedelta(seconds=TOKEN_SECONDS))
            tokens.update(
                access_token=access,
                token_type="Bearer",  # noqa: S106
                expires_in=TOKEN_SECONDS,
                refresh_token=refresh,
                scope=key.scope,
            )
            turn = msgspec.structs.replace(
                login,
                code="",
                challenge="",
                fresh=fresh,
                refresh=digest(refresh),
                redeemed=(*login.redeemed, used)[-_MOST_REDEEMED:],
            )
            return msgspec.structs.replace(key, hash=digest(access), login=turn)

        self._change_grant(secret, rotated)
        if not tokens:
            raise OAuthError("invalid_grant", "This code or token is unknown, was used, has ended or was revoked.")
        return tokens

    def revoke(self, form: Mapping[str, str], now: str) -> None:
        """Revokes the grant of a token (RFC 7009); of an unknown token nothing."""
        token = form.get("token", "")

        def revoked(key: Key, login: Login) -> Key:
            return api_keys.revoked(key, now) if digest(token) in {key.hash, login.refresh} else key

        self._change_grant(token, revoked)

    def _change_grant(self, secret: str, change: Callable[[Key, Login], Key]) -> None:
        """Changes the grant of a code or token; the file is written for no other, since anyone may send some."""
        match, used = _GRANT_TOKEN.fullmatch(secret), digest(secret)
        id_ = match[1] if match else api_keys.parse(secret)

        def names(key: Key, login: Login) -> bool:
            return key.id == id_ and used in {key.hash, login.code, login.refresh, *login.redeemed}

        def changed(keys: list[Key]) -> list[Key]:
            return [change(key, key.login) if key.login and names(key, key.login) else key for key in keys]

        if any(key.login and names(key, key.login) for key in api_keys.read(self._data)):
            api_keys.change(self._data, changed)

    def _dialects(self, query: Mapping[str, str]) -> tuple[str, ...]:
        path = self._resources.get(query.get("resource", self.issuer).rstrip("/"))
        if path is None:
            raise OAuthError("invalid_target", "resource is no address of this server.")
        name = path.removeprefix("/mcp").removeprefix("/")
        return (name,) if name else ()

    def _client(self, id_: str) -> Client | None:
        body, _, seal = id_.partition(".")
        try:
            data = urlsafe_b64decode(body + "=" * (-len(body) % 4))
            return msgspec.json.decode(data, type=Client) if _same(self._seal(data), digest(seal)) else None
        except ValueError:
            return None

    def _sign(self, data: bytes) -> str:
        return f"{urlsafe_b64encode(data).decode().rstrip('=')}.{self._seal(data)}"

    def _seal(self, data: bytes) -> str:
        return hmac.new(_server_secret(self._data), data, hashlib.sha256).hexdigest()


def _server_secret(data: Path) -> bytes:
    """Return the secret that signs clients, made at its first use."""
    file = data / FILE
    try:
        return file.read_bytes()
    except FileNotFoundError:
        make_private(data)
    new = data / f"{FILE}.{os.getpid()}"
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file_of_secret:
        file_of_secret.write(secrets.token_bytes(_SECRET_BYTES))
    try:
        os.link(new, file)  # of two processes the first has it
    except FileExistsError:
        pass
    finally:
        new.unlink()
    return file.read_bytes()


def _secret(prefix: str, id_: str) -> str:
    return f"{prefix}_{id_}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def _same(secret: str, expected: str) -> bool:
    return bool(expected) and hmac.compare_digest(digest(secret), expected)


def _verifies(verifier: str, challenge: str) -> bool:
    own_challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    return bool(_VERIFIER.fullmatch(verifier)) and hmac.compare_digest(own_challenge, challenge)


def _is_redirect(uri: str) -> bool:
    """Return whether a client may be sent to a URI: over TLS, to this machine, or to a scheme that an app has."""
    if len(uri) > _LONGEST_REDIRECT or not uri.isascii() or not uri.isprintable() or set(uri) & set(" \"'<>\\^`{|}#;,"):
        return False
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if parts.scheme in {"http", "https"}:
        return bool(host) and "@" not in parts.netloc and (parts.scheme == "https" or host in _LOOPBACK)
    return (
        bool(_SCHEME.fullmatch(parts.scheme))
        and parts.scheme not in _NO_SCHEMES
        and uri.startswith(f"{parts.scheme}://")
    )


def _matches(uri: str, registration: str) -> bool:
    """Return whether a URI is a registered one; on this machine the port may be any other (RFC 8252)."""
    if uri == registration:
        return True
    if not _is_redirect(uri):
        return False
    left, right = urlsplit(uri), urlsplit(registration)
    loopback = left.scheme == right.scheme == "http" and left.hostname == right.hostname in _LOOPBACK - {"localhost"}
    return loopback and left._replace(netloc="") == right._replace(netloc="")

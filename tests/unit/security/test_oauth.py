"""Only tokens that the issuer signed for this server and that are valid now are accepted."""

import base64
import hmac
import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from kernel.core.errors import Fault
from kernel.security.auth import Unauthenticated
from kernel.security.oauth import Issuer, JwtVerifier
from kernel.security.permissions import Permission

HERE = "https://memory.example"
RSA = rsa.generate_private_key(65537, 2048)
ELLIPTIC = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()
SIGNING: Mapping[str, tuple[str, Any, Any]] = {
    "rsa": ("RS256", RSA, RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True)),
    "elliptic": ("ES256", ELLIPTIC, ECAlgorithm.to_jwk(ELLIPTIC.public_key(), as_dict=True)),
    "edwards": ("EdDSA", EDWARDS, OKPAlgorithm.to_jwk(EDWARDS.public_key(), as_dict=True)),
}
Token = Callable[..., str]


def key_set(*names: str) -> bytes:
    return json.dumps({"keys": [{**SIGNING[name][2], "kid": name, "use": "sig"} for name in names]}).encode()


@pytest.fixture
def tokens(tmp_path: Path) -> JwtVerifier:
    (tmp_path / "jwks.json").write_bytes(key_set(*SIGNING))
    parts = {f"{HERE}/mcp/brain": "brain", f"{HERE}/mcp/notes": "notes"}
    return JwtVerifier(Issuer("https://id.example", tmp_path / "jwks.json", frozenset({HERE, f"{HERE}/mcp"}), parts))


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    whole = {
        "iss": "https://id.example",
        "aud": f"{HERE}/mcp",
        "sub": "ada",
        "exp": now + 60,
        "iat": now,
        "scope": "read",
        "tenant": "acme",
        **more,
    }
    return {name: value for name, value in whole.items() if value is not None}


def token(kid: str = "rsa", headers: Mapping[str, Any] | None = None, **more: Any) -> str:
    algorithm, key, _ = SIGNING[kid]
    return jwt.encode(claims(**more), key, algorithm, {"kid": kid, **(headers or {})})


def refused(found: JwtVerifier, bearer: str) -> tuple[str, str]:
    with pytest.raises(Unauthenticated) as raised:
        found.caller(bearer)
    return raised.value.error, str(raised.value).removeprefix("This token is not accepted: ")


@pytest.mark.parametrize("kid", SIGNING)
def test_token_gives_caller_grant_and_expiry(tokens: JwtVerifier, kid: str) -> None:
    known = tokens.caller(token(kid, exp=4_102_444_800, scope="openid write quipu:read"))
    caller = known.caller
    assert (caller.actor, caller.key, caller.tenant, caller.audit_identity) == (
        "oauth:ada",
        "oauth:ada",
        "acme",
        "acme/oauth:ada",
    )
    assert (caller.grant.permission, caller.grant.dialects, caller.grant.by_key) == (
        Permission.write,
        frozenset(),
        True,
    )
    assert known.expires == "2100-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("more", "right"),
    [
        ({"scope": "read"}, Permission.read),
        ({"scope": "quipu:admin"}, Permission.admin),
        ({"scope": None, "scp": ["write", "x"]}, Permission.write),
        ({"scope": None, "scp": "read write"}, Permission.write),
    ],
)
def test_highest_scope_is_the_permission(tokens: JwtVerifier, more: dict[str, Any], right: Permission) -> None:
    assert tokens.caller(token(**more)).caller.grant.permission is right


@pytest.mark.parametrize("scope", [None, "", "openid", "READ", "readwrite", 7, [], ["owner"], {"read": 1}, True])
def test_token_without_a_known_scope_is_refused(tokens: JwtVerifier, scope: Any) -> None:
    assert refused(tokens, token(scope=scope))[0] == "insufficient_scope"


@pytest.mark.parametrize(
    ("audience", "dialects"),
    [
        (HERE, set()),
        ([HERE, "https://other.example"], set()),
        (f"{HERE}/mcp/brain", {"brain"}),
        ([f"{HERE}/mcp/brain", f"{HERE}/mcp/notes"], {"brain", "notes"}),
        ([f"{HERE}/mcp/brain", f"{HERE}/mcp"], set()),
    ],
)
def test_token_for_a_dialect_audience_allows_that_dialect(
    tokens: JwtVerifier, audience: Any, dialects: set[str]
) -> None:
    assert tokens.caller(token(aud=audience)).caller.grant.dialects == dialects


OTHER = rsa.generate_private_key(65537, 2048)
PUBLIC = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def confused() -> str:
    """Signed with the public key as if it were a shared secret, which a verifier that trusts `alg` takes."""
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "typ": "JWT", "kid": "rsa"}, claims())
    )
    mark = base64.urlsafe_b64encode(hmac.digest(PUBLIC, head + b"." + body, "sha256")).rstrip(b"=")
    return b".".join((head, body, mark)).decode()


def altered(bearer: str, part: int) -> str:
    parts = bearer.split(".")
    middle = len(parts[part]) // 2
    parts[part] = parts[part][:middle] + ("A" if parts[part][middle] != "A" else "B") + parts[part][middle + 1 :]
    return ".".join(parts)


FORGED: dict[str, Callable[[], str]] = {
    "no algorithm": lambda: jwt.encode(claims(), "", "none", {"kid": "rsa"}),
    "a shared secret": lambda: jwt.encode(claims(), "s" * 64, "HS256", {"kid": "rsa"}),
    "the public key as a secret": confused,
    "a weaker algorithm": lambda: jwt.encode(claims(), RSA, "RS512", {"kid": "rsa"}),
    "another algorithm of the key": lambda: jwt.encode(claims(), RSA, "PS256", {"kid": "rsa"}),
    "another key": lambda: jwt.encode(claims(), OTHER, "RS256", {"kid": "rsa"}),
    "another key of the set": lambda: jwt.encode(claims(), ELLIPTIC, "ES256", {"kid": "rsa"}),
    "no name of a key": lambda: jwt.encode(claims(), RSA, "RS256"),
    "an unknown name": lambda: token(headers={"kid": "none"}),
    "a name that is none": lambda: token(headers={"kid": ""}),
    "a key of its own": lambda: jwt.encode(claims(), OTHER, "RS256", {"kid": "own", "jwk": SIGNING["rsa"][2]}),
    "a place of keys of its own": lambda: jwt.encode(
        claims(), OTHER, "RS256", {"kid": "x", "jku": "https://evil.example"}
    ),
    "an extension it insists on": lambda: token(headers={"crit": ["exp"]}),
    "another kind": lambda: token(headers={"typ": "logout+jwt"}),
    "altered claims": lambda: altered(token(), 1),
    "an altered signature": lambda: altered(token(), 2),
    "no signature": lambda: token().rpartition(".")[0] + ".",
    "expired": lambda: token(exp=int(time.time()) - 31),
    "not yet": lambda: token(nbf=int(time.time()) + 60),
    "from the future": lambda: token(iat=int(time.time()) + 60),
    "no end": lambda: token(exp=None),
    "an endless end": lambda: token(exp=float("inf")),
    "an end that is none": lambda: token(exp="soon"),
    "another issuer": lambda: token(iss="https://id.example/"),
    "no issuer": lambda: token(iss=None),
    "for another audience": lambda: token(aud="https://other.example/mcp"),
    "for what begins like us": lambda: token(aud=f"{HERE}/mcp/brain/x"),
    "without an audience": lambda: token(aud=None),
    "for an empty list": lambda: token(aud=[]),
    "for no text": lambda: token(aud=[7]),
    "without a subject": lambda: token(sub=None),
    "of an empty name": lambda: token(sub=""),
    "of no text": lambda: jwt.encode({**claims(), "sub": 7}, RSA, "RS256", {"kid": "rsa"}),
    "of a name on two lines": lambda: token(sub="a\nb"),
    "of too long a name": lambda: token(sub="a" * 256),
    "of no tenant": lambda: token(tenant=None),
    "of a tenant elsewhere": lambda: token(tenant="../main"),
    "of a tenant that is none": lambda: token(tenant=["acme"]),
}


@pytest.mark.parametrize("name", FORGED)
def test_token_with_wrong_claims_is_unauthenticated(tokens: JwtVerifier, name: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        bearer = FORGED[name]()
    error, message = refused(tokens, bearer)
    assert error == "invalid_token"
    assert not any(part in message for part in ("acme", "ada", "example", bearer[:10]))


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> JwtVerifier:
    file = tmp_path_factory.mktemp("oauth") / "jwks.json"
    file.write_bytes(key_set("rsa"))
    return JwtVerifier(Issuer("https://id.example", file, frozenset({HERE}), {}))


PARTS = st.lists(st.sampled_from(["e30", "eyJhbGciOiJub25lIn0", "", "."]), max_size=5).map(".".join)


@given(st.text(max_size=40) | PARTS)
def test_text_that_is_no_token_is_unauthenticated(lasting: JwtVerifier, bearer: str) -> None:
    assert refused(lasting, bearer)[0] == "invalid_token"


def test_deeply_nested_header_is_unauthenticated(tokens: JwtVerifier) -> None:
    head = base64.urlsafe_b64encode(b'{"alg":' * 3000).decode().rstrip("=")
    assert refused(tokens, f"{head}.e30.e30")[0] == "invalid_token"


def test_tenant_is_fixed_or_comes_from_a_claim(tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_bytes(key_set("edwards"))
    shared = Issuer("https://id.example", tmp_path / "jwks.json", frozenset({HERE}), {})
    for issuer, tenant in ((shared._replace(tenant="main"), "main"), (shared._replace(claim="org"), "beta")):
        found = JwtVerifier(issuer).caller(jwt.encode(claims(aud=HERE, org="beta"), EDWARDS, "EdDSA"))
        assert found.caller.tenant == tenant


def test_changed_keys_take_effect(tokens: JwtVerifier, tmp_path: Path) -> None:
    assert not tokens.reload_if_changed()
    old, new = token("rsa"), token("edwards")
    (tmp_path / "next").write_bytes(key_set("edwards"))
    (tmp_path / "next").replace(tmp_path / "jwks.json")
    assert tokens.reload_if_changed()
    assert refused(tokens, old)[0] == "invalid_token"
    assert tokens.caller(new)
    assert not tokens.reload_if_changed()


def test_unreadable_keys_refuse_every_token(
    tokens: JwtVerifier, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bearer = token()
    (tmp_path / "jwks.json").write_bytes(b"{")
    assert tokens.reload_if_changed()
    assert refused(tokens, bearer)[0] == "invalid_token"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def entry(key: Any, **more: Any) -> bytes:
    return json.dumps({"keys": [{**key, **more}]}).encode()


SMALL = RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 1024).public_key(), as_dict=True)
UNFIT = {
    "nothing": b"",
    "no object": b"[]",
    "no keys": b'{"keys":[]}',
    "no list": b'{"keys":7}',
    "no key in it": b'{"keys":[7,{},null]}',
    "nested without end": b'{"keys":' + b"[" * 100_000,
    "a shared secret": entry({"kty": "oct", "k": "c2VjcmV0", "kid": "a"}),
    "a private key": entry(RSAAlgorithm.to_jwk(RSA, as_dict=True), kid="a"),
    "a key for secrets": entry(SIGNING["rsa"][2], use="enc"),
    "a key for another algorithm": entry(SIGNING["rsa"][2], alg="RS384"),
    "a small key": entry(SMALL),
    "two keys of one name": json.dumps({"keys": [SIGNING["rsa"][2], SIGNING["edwards"][2]]}).encode(),
}


@pytest.mark.parametrize("name", UNFIT)
def test_unusable_key_set_is_a_fault_at_startup(tmp_path: Path, name: str) -> None:
    (tmp_path / "jwks.json").write_bytes(UNFIT[name])
    with pytest.raises(Fault, match=r"^jwks\.json ") as raised:
        JwtVerifier(Issuer("https://id.example", tmp_path / "jwks.json", frozenset({HERE}), {}))
    assert raised.value.code == "invalid"


def test_missing_key_set_is_a_fault_at_startup(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"jwks\.json"):
        JwtVerifier(Issuer("https://id.example", tmp_path / "jwks.json", frozenset({HERE}), {}))


def test_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(Fault, match=r"quipu-memory\[oauth\]"):
        JwtVerifier(Issuer("https://id.example", tmp_path / "jwks.json", frozenset({HERE}), {}))

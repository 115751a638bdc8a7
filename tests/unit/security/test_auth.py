"""Authentication by key, reloading of keys within a second, and challenges."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.security import api_keys, auth
from kernel.security.api_keys import Key
from kernel.security.auth import METADATA, Auth, CachedCaller, Challenge, Unauthenticated
from kernel.security.permissions import ANONYMOUS_CALLER, Caller, Permission, grant, with_client_name

NOW = "2026-11-21T10:00:00.000Z"
HOST = {b"host": b"memory.example:7847"}
Make = Callable[..., bytes]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Creates a key; returns its Authorization header."""

    def made(scope: Any = "read", **more: Any) -> bytes:
        return b"Bearer " + api_keys.create(tmp_path, Key("", scope, NOW, **more))[1].encode()

    return made


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks the key file at every request."""
    monkeypatch.setattr(auth, "_RELOAD_SECONDS", -1.0)


def given(header: bytes | None) -> dict[bytes, bytes]:
    return {} if header is None else {b"authorization": header}


def refused(found: Auth, header: bytes | None) -> tuple[str, str]:
    with pytest.raises(Unauthenticated) as raised:
        found.caller(given(header))
    return raised.value.error, str(raised.value)


def shown(caller: Caller) -> dict[str, Any]:
    return msgspec.to_builtins(caller)


NEEDED = ("", "A key is needed: Authorization: Bearer KEY")
UNKNOWN = ("invalid_token", "This key is unknown, has expired or was revoked")


def test_callers_are_anonymous_without_keys(tmp_path: Path) -> None:
    found = Auth(tmp_path)
    assert found.caller({}) is ANONYMOUS_CALLER
    assert found.caller(given(b"Basic YTpi")) is ANONYMOUS_CALLER
    assert found.caller(given(b"Bearer of.a.proxy")) is ANONYMOUS_CALLER
    assert (found.needed(), found.key_id({})) == (False, "")


def test_unknown_key_is_refused_even_if_keys_are_optional(tmp_path: Path, make: Make) -> None:
    elsewhere = make()
    (tmp_path / "keys.json").unlink()
    assert refused(Auth(tmp_path), elsewhere) == UNKNOWN


def test_key_gives_its_caller_and_grant(tmp_path: Path, make: Make) -> None:
    header = make("write", tenant="acme", dialects=("brain",), expires="9999-01-01T00:00:00.000Z")
    id_ = header[13:21].decode()
    found = Auth(tmp_path)
    caller = found.caller(given(header))
    expected = Caller(id_, grant(Permission.write, frozenset({"brain"}), True), "acme", id_)
    assert shown(caller) == shown(expected)
    assert caller.grant is expected.grant
    assert found.caller(given(header)) is caller
    assert found.caller(given(header.replace(b"Bearer ", b"bearer   "))) is not None
    assert found.key_id(given(header)) == id_


@pytest.mark.parametrize("header", [None, b"", b"Bearer", b"Bearer ", b"Basic YTpi", b"quipu_aaaaaaaa_", b"\xff\xfe"])
def test_requests_need_a_key_once_one_exists(tmp_path: Path, make: Make, header: bytes | None) -> None:
    make()
    found = Auth(tmp_path)
    assert refused(found, header) == NEEDED
    assert (found.needed(), found.key_id(given(header))) == (True, "")


def test_anything_but_an_exact_key_is_unknown(tmp_path: Path, make: Make) -> None:
    header = make()
    found = Auth(tmp_path)
    for place in (13, 20, 22, 40, len(header) - 2):
        other = header[:place] + (b"a" if header[place : place + 1] != b"a" else b"b") + header[place + 1 :]
        assert refused(found, other) == UNKNOWN
    for other in (header[:-1], header + b"a", header + b" " + header, header.replace(b"quipu_", b"quipu_quipu_")):
        assert refused(found, other) == UNKNOWN
    assert refused(found, b"Bearer quipu_\xff") == UNKNOWN
    assert refused(found, b"Bearer x.y.z") == ("invalid_token", "This is no key of this server")


@pytest.mark.slow
def test_new_and_revoked_keys_take_effect_within_a_second(tmp_path: Path, make: Make) -> None:
    found = Auth(tmp_path)
    assert found.caller({}) is ANONYMOUS_CALLER
    header = make()
    begun = time.monotonic()
    while not found.needed():
        assert time.monotonic() < begun + 1
    assert found.key_id(given(header))
    api_keys.revoke(tmp_path, header[13:21].decode(), NOW)
    begun = time.monotonic()
    while found.key_id(given(header)):
        assert time.monotonic() < begun + 1
    assert refused(found, header) == UNKNOWN


@pytest.mark.usefixtures("at_once")
def test_revoking_the_last_key_does_not_make_keys_optional(tmp_path: Path, make: Make) -> None:
    found = Auth(tmp_path)
    header = make()
    api_keys.revoke(tmp_path, header[13:21].decode(), NOW)
    assert refused(found, None) == NEEDED
    assert refused(found, header) == UNKNOWN


@pytest.mark.usefixtures("at_once")
def test_cached_key_expires(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "utc_now", lambda: "2026-11-21T11:59:59.999Z")
    header, other = make(expires="2026-11-21T12:00:00.000Z"), make()
    found = Auth(tmp_path)
    assert found.key_id(given(header))
    assert found.key_id(given(other))
    monkeypatch.setattr(auth, "utc_now", lambda: "2026-11-21T12:00:00.000Z")
    assert refused(found, header) == UNKNOWN
    assert found.key_id(given(other))


@pytest.mark.usefixtures("at_once")
def test_unreadable_key_file_refuses_every_request(
    tmp_path: Path, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    header = make()
    found = Auth(tmp_path)
    assert found.key_id(given(header))
    whole = (tmp_path / "keys.json").read_bytes()
    (tmp_path / "keys.json").write_bytes(whole[:-5])
    assert refused(found, header) == UNKNOWN
    assert refused(found, None) == NEEDED
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert header[22:].decode() not in caplog.text
    (tmp_path / "keys.json").write_bytes(whole)
    os.utime(tmp_path / "keys.json", ns=(1, 1))
    assert found.key_id(given(header))


@pytest.mark.usefixtures("at_once")
def test_open_server_requires_no_key_but_accepts_its_keys(tmp_path: Path, make: Make) -> None:
    header = make("read", tenant="acme")
    found = Auth(tmp_path, required=True, is_open=True)
    assert found.caller({}) is ANONYMOUS_CALLER
    assert found.caller(given(header)).tenant == "acme"
    assert refused(found, header[:-1]) == UNKNOWN
    (tmp_path / "keys.json").write_bytes(b"{")
    assert found.caller({}) is ANONYMOUS_CALLER


def test_required_key_is_required_before_any_exists(tmp_path: Path) -> None:
    assert refused(Auth(tmp_path, required=True), None) == NEEDED


def test_bearers_that_are_no_api_keys_go_to_the_token_verifier(tmp_path: Path, make: Make) -> None:
    make()
    known = CachedCaller(Caller("oauth:ada", grant(Permission.read, frozenset(), True), "acme", "oauth:ada"), "")
    asked: list[str] = []

    class Tokens:
        def caller(self, bearer: str, /) -> CachedCaller:
            asked.append(bearer)
            if bearer != "a.b.c":
                raise Unauthenticated("invalid_token", "no")
            return known

        def reload_if_changed(self) -> bool:
            return False

    found = Auth(tmp_path, tokens=Tokens())
    assert found.caller(given(b"Bearer a.b.c")) is known.caller
    assert found.caller(given(b"Bearer a.b.c")) is known.caller
    assert refused(found, b"Bearer a.b.d") == ("invalid_token", "no")
    assert asked == ["a.b.c", "a.b.d"]


def test_cache_of_callers_is_bounded(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_CACHED_CALLERS", 3)
    made = [make() for _ in range(5)]
    found = Auth(tmp_path)
    for header in made * 2:
        assert found.key_id(given(header)) == header[13:21].decode()
    assert len(found._known) <= 3


def test_no_bearer_is_kept_in_memory(tmp_path: Path, make: Make) -> None:
    header = make()
    found = Auth(tmp_path)
    found.caller(given(header))
    assert header[-43:].decode() not in repr(vars(found))


def test_actor_of_a_keyed_caller_is_key_and_client_name() -> None:
    keyed = Caller("k1", grant(Permission.read, frozenset(), True), "acme", "k1")
    assert with_client_name(ANONYMOUS_CALLER, "cursor").actor == "cursor"
    assert with_client_name(ANONYMOUS_CALLER, "anonymous") is ANONYMOUS_CALLER
    assert with_client_name(keyed, "anonymous") is keyed
    spoken = with_client_name(keyed, "cursor")
    assert (spoken.actor, spoken.audit_identity, spoken.grant) == ("k1/cursor", "acme/k1/cursor", keyed.grant)


ISSUER = "https://id.example"
PATHS = Challenge("", (ISSUER,), frozenset({"/mcp", "/mcp/brain"}))


def test_challenge_names_metadata_and_scope() -> None:
    assert PATHS.header("/mcp/brain", HOST, scope=Permission.read) == (
        b'Bearer realm="quipu", resource_metadata="http://memory.example:7847'
        b'/.well-known/oauth-protected-resource/mcp/brain", scope="read"'
    )
    challenge = PATHS.header("/tools/x", HOST, scope=Permission.write, error="insufficient_scope", why='a "b" \\ é\r\n')
    assert challenge == (
        b'Bearer realm="quipu", resource_metadata="http://memory.example:7847/.well-known/oauth-protected-resource", '
        b'scope="write", error="insufficient_scope", error_description="a ?b? ? ???"'
    )


def test_without_an_authorization_server_there_is_no_metadata_and_no_link_to_it() -> None:
    by_hand = Challenge("https://memory.example", (), PATHS.paths)
    assert by_hand.header("/mcp", HOST, scope=Permission.read) == b'Bearer realm="quipu", scope="read"'
    assert (by_hand.metadata("", HOST), by_hand.metadata("/mcp", HOST)) == (None, None)


@pytest.mark.parametrize("host", [b"", b'a"b', b"a b", b"a/b", b"a\r\nb", b"[::1", "é".encode()])
def test_invalid_host_is_not_reflected(host: bytes) -> None:
    assert PATHS.header("/mcp", {b"host": host}, scope=None) == b'Bearer realm="quipu"'


def test_metadata_names_the_resource_by_its_public_address() -> None:
    public = Challenge("https://memory.example", (ISSUER,), PATHS.paths)
    shared = {
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["read", "write", "admin", "operator"],
        "resource_name": "Quipu",
        "authorization_servers": [ISSUER],
    }
    assert PATHS.metadata("/mcp", {b"host": b"[::1]:80"}) == {"resource": "http://[::1]:80/mcp", **shared}
    assert public.metadata("", HOST) == {
        "resource": "https://memory.example",
        **shared,
    }
    assert public.metadata("/tools", HOST) is None
    assert public.header("/mcp", HOST, scope=None) == (
        b'Bearer realm="quipu", resource_metadata="https://memory.example%b/mcp"' % METADATA.encode()
    )


def test_lost_keys_open_nothing(tmp_path: Path) -> None:
    told: list[bool] = []
    assert Auth(tmp_path, had_keys=True).needed()
    assert not Auth(tmp_path, had_keys=True, is_open=True).needed()
    auth = Auth(tmp_path, on_keys=lambda: told.append(True))
    assert not auth.needed()
    api_keys.create(tmp_path, api_keys.Key("", "read", ""))
    auth.checked_until = 0.0
    assert auth.needed()
    (tmp_path / api_keys.FILE).unlink()
    auth.checked_until = 0.0
    assert auth.needed()
    api_keys.clear(tmp_path)
    auth.checked_until = 0.0
    assert (auth.needed(), told) == (False, [True])

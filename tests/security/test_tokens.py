"""A token of the configured issuer opens its own scope, at its address; the way there is told to strangers."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from jwt.algorithms import OKPAlgorithm

from kernel.core.config import Config, OAuth
from tests.security.authenticated_server import House, house
from tests.support.security_routes import METADATA
from tests.support.security_scopes import DIALECTS, told

PUBLIC = "https://memory.example"
ISSUER = "https://id.example"
KEY = ed25519.Ed25519PrivateKey.generate()
KEYS = json.dumps({"keys": [OKPAlgorithm.to_jwk(KEY.public_key(), as_dict=True)]})


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A server that trusts an issuer, and has no key of its own."""
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "jwks.json").write_text(KEYS)
    trusted = OAuth(ISSUER, folder / "jwks.json")
    with house(Config(data=folder / "data", model=None, public=PUBLIC, oauth=trusted)) as running:
        yield running


def token(**more: Any) -> str:
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": f"{PUBLIC}/mcp", "sub": "ada", "exp": now + 60, "scope": "read", "tenant": "acme"}
    return jwt.encode({**usual, **more}, KEY, "EdDSA")


def test_a_stranger_finds_the_way_from_the_refusal_to_the_issuer(trusting: House) -> None:
    refused = trusting.mcp("tools/list", {}, path="/mcp/brain")
    assert (refused.status, told(refused.challenge, "scope")) == (401, "read")
    where = told(refused.challenge, "resource_metadata")
    assert where == f"{PUBLIC}{METADATA}/mcp/brain"
    found = trusting.ask("GET", where.removeprefix(PUBLIC))
    assert json.loads(found.body) == {
        "resource": f"{PUBLIC}/mcp/brain",
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["read", "write", "admin", "operator"],
        "resource_name": "Quipu",
        "authorization_servers": [ISSUER],
    }


def test_a_token_opens_what_its_scope_says_and_is_told_what_it_lacks(trusting: House) -> None:
    memory = {"path": "a", "content": "b"}
    lacking = trusting.tool("add_memory", memory, token())
    assert (lacking.status, told(lacking.challenge, "error")) == (403, "insufficient_scope")
    assert told(lacking.challenge, "scope") == "write"
    assert trusting.tool("add_memory", memory, token(scope="write")).status == 200
    assert trusting.tool("read_memory", {"path": "a"}, token()).status == 200
    assert trusting.tool("read_memory", {"path": "a"}, token(tenant="beta")).status == 404
    nothing = trusting.tool("read_memory", {"path": "a"}, token(scope="profile"))
    assert (nothing.status, told(nothing.challenge, "error")) == (403, "insufficient_scope")


def test_what_a_token_did_is_kept_under_its_subject(trusting: House) -> None:
    trusting.tool("add_memory", {"path": "mine", "content": "of ada"}, token(scope="write"))
    found = json.loads(trusting.tool("recall", {"ids": ["paths/mine"]}, token()).body)
    assert found["memories"][0]["provenance"]["actor"] == "oauth:ada"


@pytest.mark.parametrize(
    "more",
    [
        {"aud": "https://other.example/mcp"},
        {"iss": "https://other.example"},
        {"exp": 1},
        {"nbf": 9_999_999_999},
        {"tenant": "../main"},
        {"sub": None},
    ],
    ids=str,
)
def test_a_token_for_anybody_else_is_refused_as_invalid(trusting: House, more: Mapping[str, Any]) -> None:
    usual = {name: value for name, value in more.items() if value is not None}
    bearer = token(**usual) if usual else jwt.encode({"iss": ISSUER, "aud": PUBLIC, "exp": 9_999_999_999}, KEY, "EdDSA")
    for answer in (trusting.tool("list_memories", {}, bearer), trusting.mcp("tools/list", {}, bearer)):
        assert (answer.status, told(answer.challenge, "error")) == (401, "invalid_token")


def test_a_token_for_the_address_of_one_dialect_reaches_no_other(trusting: House) -> None:
    bearer = token(aud=f"{PUBLIC}/mcp/paths", scope="admin")
    assert trusting.listed(bearer) == DIALECTS["paths"]
    assert trusting.tool("list_memories", {}, bearer).status == 200
    assert trusting.tool("get_memories", {"db": "core"}, bearer).status == 403
    everything = trusting.tool("recall", {"query": "b"}, token(aud=f"{PUBLIC}/mcp/common"))
    assert (everything.status, told(everything.challenge, "error")) == (401, "invalid_token")


def test_a_token_that_was_met_ends_when_it_expires(trusting: House) -> None:
    """Thirty seconds are given to clocks that differ; this token is past nearly all of them."""
    bearer = token(exp=int(time.time()) - 28)
    assert trusting.tool("list_memories", {}, bearer).status == 200
    time.sleep(3)
    assert trusting.tool("list_memories", {}, bearer).status == 401


def test_keys_and_tokens_live_side_by_side(trusting: House) -> None:
    secret = trusting.key("read", "acme")
    trusting.told()
    assert trusting.tool("list_memories", {}, secret).status == 200
    assert trusting.tool("list_memories", {}, token()).status == 200
    assert trusting.tool("list_memories", {}).status == 401

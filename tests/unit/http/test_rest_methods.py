"""REST methods: the form of a request, who may make it, and the form of every error."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel.core.config import Config
from kernel.security import api_keys
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit
from tests.conftest import everything
from tests.unit.rest_client import ROOT, RestClient

JSON = {"content-type": "application/json"}
CREATED = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def rest(kernel: Kernel, runner: asyncio.Runner) -> Iterator[RestClient]:
    client = RestClient(kernel, runner)
    yield client
    client.close()


def error(answer: httpx.Response) -> tuple[int, str, str]:
    """Status, type and message of an error, whose form is always the same."""
    found = answer.json()
    inner = found["error"]
    assert found == {"type": "error", "error": inner, "request_id": answer.headers["request-id"]}
    assert found["request_id"].startswith("req_")
    return answer.status_code, inner["type"], inner["message"]


@pytest.mark.parametrize(
    ("verb", "path", "more", "status", "kind"),
    [
        ("GET", "/nowhere", {}, 404, "not_found_error"),
        ("GET", "//memories", {}, 404, "not_found_error"),
        ("GET", "/a/memories/b/c", {}, 404, "not_found_error"),
        ("GET", "/a/", {}, 404, "not_found_error"),
        ("PUT", "", {}, 405, "invalid_request_error"),
        ("DELETE", "", {}, 405, "invalid_request_error"),
        ("GET", "/a/archive", {}, 405, "invalid_request_error"),
        ("POST", "", {"content": b"name=a"}, 415, "invalid_request_error"),
        ("POST", "", {"content": b"{", "headers": JSON}, 400, "invalid_request_error"),
        ("POST", "", {"content": b"[]", "headers": JSON}, 400, "invalid_request_error"),
        ("POST", "", {"content": b'{"name": "\xff"}', "headers": JSON}, 400, "invalid_request_error"),
        ("POST", "", {"content": b'{"name": "\\ud800"}', "headers": JSON}, 400, "invalid_request_error"),
        (
            "POST",
            "",
            {"content": b'{"name": ' + b"[" * 500 + b"]" * 500 + b"}", "headers": JSON},
            400,
            "invalid_request_error",
        ),
        ("POST", "", {"content": b"{}" + b" " * 5_000_000, "headers": JSON}, 413, "invalid_request_error"),
        ("POST", "", {"content": b"{}", "headers": {**JSON, "content-encoding": "gzip"}}, 415, "invalid_request_error"),
        ("GET", "", {"headers": {"host": "evil.example"}}, 421, "invalid_request_error"),
        ("GET", "", {"headers": {"origin": "https://evil.example"}}, 403, "permission_error"),
        ("GET", "?" + "&".join(f"a{number}=1" for number in range(65)), {}, 400, "invalid_request_error"),
        ("GET", "?limit=%ff", {}, 400, "invalid_request_error"),
    ],
)
def test_request_that_is_refused_has_the_form_of_every_error(
    rest: RestClient, kernel: Kernel, verb: str, path: str, more: Any, status: int, kind: str
) -> None:
    before = everything(kernel)
    answer = rest.send(verb, f"{ROOT}{path}", **more)
    assert error(answer)[:2] == (status, kind)
    if status == 405:
        assert verb not in answer.headers["allow"]
    assert everything(kernel) == before


def test_success_has_the_id_of_the_request(rest: RestClient) -> None:
    answers = [rest.send("GET", ROOT) for _ in "ab"]
    assert len({answer.headers["request-id"] for answer in answers}) == 2


@pytest.mark.parametrize("body", [{"content": b""}, {"content": b"{}"}, {}], ids=["empty", "object", "none"])
def test_method_without_arguments_takes_json_without_a_body(rest: RestClient, body: Any) -> None:
    made = rest("POST", "", {"name": "a"})
    assert rest.send("POST", f"{ROOT}/{made['id']}/archive", headers=JSON, **body).status_code == 200
    assert rest.send("DELETE", f"{ROOT}/{made['id']}", headers=JSON, **body).status_code == 200


def test_the_path_counts_before_the_body_and_the_body_before_the_query(rest: RestClient) -> None:
    one, other = (rest("POST", "", {"name": name})["id"] for name in ("one", "other"))
    body = {"memory_store_id": other, "path": "/a", "content": "x", "view": "full"}
    made = rest("POST", f"/{one}/memories", body, view="basic", beta="true")
    assert (made["memory_store_id"], made["content"]) == (one, "x")


def test_unknown_parameters_of_a_query_are_passed_over(rest: RestClient) -> None:
    assert rest("GET", "", beta="true", limit=[1, 2]) == rest("GET", "")


def test_a_percent_encoded_id_is_one(rest: RestClient) -> None:
    made = rest("POST", "", {"name": "a"})
    assert rest("GET", f"/%6d{made['id'][1:]}") == made
    assert rest("GET", "/%2e%2e")[0] == rest("GET", "/a%2Fb%2Fc")[0] == 404


@pytest.fixture
def keys(config: Config, kernel: Kernel) -> dict[str, str]:
    """A key of each kind."""
    made = {scope: api_keys.Key("", scope, CREATED) for scope in ("read", "write")}  # type: ignore[arg-type]
    made |= {"paths": api_keys.Key("", "write", CREATED, dialects=("paths",))}
    made |= {"acme": api_keys.Key("", "write", CREATED, tenant="acme")}
    return {name: api_keys.create(config.data, key)[1] for name, key in made.items()}


@pytest.mark.slow
@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
def test_key_comes_as_bearer_or_by_itself(
    keys: dict[str, str], kernel: Kernel, runner: asyncio.Runner, header: str
) -> None:
    def client(key: str) -> RestClient:
        return RestClient(kernel, runner, **{header: f"Bearer {key}" if header == "authorization" else key})

    assert client(keys["write"])("POST", "", {"name": "a"})["name"] == "a"
    assert [one["name"] for one in client(keys["read"])("GET", "")["data"]] == ["a", "memories"]
    assert [one["name"] for one in client(keys["acme"])("GET", "")["data"]] == ["memories"]
    refused = client(keys["read"]).send("POST", ROOT, json={"name": "b"})
    assert error(refused) == (403, "permission_error", "create_memory_store needs the scope write")
    assert 'scope="write"' in refused.headers["www-authenticate"]
    assert error(client(keys["paths"]).send("GET", ROOT))[:2] == (403, "permission_error")
    assert error(client(f"{keys['write']}x").send("GET", ROOT))[:2] == (401, "authentication_error")
    unknown = RestClient(kernel, runner).send("GET", f"{ROOT}/x/y/z")
    assert error(unknown)[:2] == (401, "authentication_error")
    kernel.store.write_sync(lambda _tx: None)  # a denial is written beside the call
    entries = kernel.store.read_sync(lambda tx: audit.read(tx, 10))
    assert [(entry.dialect, entry.tool, entry.outcome) for entry in entries] == [
        ("files", "list_memory_stores", "denied"),
        ("files", "create_memory_store", "denied"),
        ("files", "create_memory_store", "done"),
    ]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    "name description metadata path content view precondition memory_store_id memory_id limit page depth path_prefix "
    "include_archived created_at[gte] operation expected_content_sha256 memory_version_id other".split()
)
IDS = st.sampled_from(["STORE", "MEMORY", "VERSION", "x", "%00", "%ff", "é", ""])
METHODS = [(method.verb, method.path) for dialect in app.DIALECTS for method in dialect.rest]


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_request_has_an_answer(rest: RestClient, data: st.DataObject) -> None:
    store = rest("POST", "", {"name": "a"})
    memory = rest("POST", f"/{store['id']}/memories", {"path": "/a/b", "content": "x"})
    known = {"STORE": store["id"], "MEMORY": memory["id"], "VERSION": memory["memory_version_id"]}
    verb, path = data.draw(st.sampled_from(METHODS))
    for parameter in ("{memory_store_id}", "{memory_id}", "{memory_version_id}"):
        named = data.draw(IDS | st.just(parameter.split("_")[1].upper().rstrip("}")))
        path = path.replace(parameter, known.get(named, named))
    query = data.draw(st.dictionaries(FIELDS, st.text(max_size=8), max_size=3))
    body = data.draw(st.dictionaries(FIELDS, JSON_VALUES, max_size=4)) if verb == "POST" else None

    answer = rest.send(verb, path, params=query, **({} if body is None else {"json": body}))

    assert answer.status_code == 200 or error(answer)[0] < 500


def test_methods_are_there_only_with_their_dialect(config: Config, runner: asyncio.Runner) -> None:
    kernel = app.open_kernel(config, (app.paths.DIALECT,))
    try:
        assert RestClient(kernel, runner).send("GET", ROOT).status_code == 404
    finally:
        kernel.store.close()


def test_every_method_of_a_dialect_has_a_path_of_its_own() -> None:
    methods = [(method.verb, method.path) for dialect in app.DIALECTS for method in dialect.rest]
    assert len({*methods}) == len(methods) == 19
    tools = [method.tool.name for dialect in app.DIALECTS for method in dialect.rest]
    others = [tool.name for dialect in app.DIALECTS for tool in dialect.tools]
    assert len({*tools, *others}) == len(tools) + len(others)

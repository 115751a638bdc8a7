"""The official types as oracle: results are valid for them, and requests are accepted or refused as by them."""

from typing import Any

import pydantic
import pytest
from mcp_types.methods import SERVER_RESULTS, serialize_server_result, validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from kernel.mcp import messages
from tests.http.http_requests import LEGACY, MODERN, changed, legacy, message, meta, modern, send
from tests.http.mcp_fixture import Served

FORMS = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
CLIENT = {"name": "a", "version": "1"}
REF = {"ref": {"type": "ref/prompt", "name": "greeting"}, "argument": {"name": "name", "value": "A"}}
ANSWERED: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "echo", "arguments": {"text": "hi"}}),
    ("tools/call", {"name": "echo", "arguments": {}}),
    ("tools/call", {"name": "count"}),
    ("tools/call", {"name": "show"}),
    ("tools/call", {"name": "crash"}),
    ("tools/call", {"name": "fail", "arguments": {"code": "busy"}}),
    ("tools/call", {"name": "keep", "arguments": {"text": ""}}),
    ("tools/call", {"name": "silent", "arguments": {"text": ""}}),
    ("tools/call", {"name": "ask", "arguments": {"text": ""}}),
    ("tools/call", {"name": "demand"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "first://a"}),
    ("resources/read", {"uri": "first://b"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greeting", "arguments": {"name": "Ada"}}),
    ("completion/complete", REF),
]
IN_MODERN = [*ANSWERED, ("server/discover", {}), ("prompts/get", {"name": "dialogue"})]
IN_LEGACY = [
    *ANSWERED,
    ("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}),
    ("ping", {}),
    ("logging/setLevel", {"level": "error"}),
    ("resources/subscribe", {"uri": "first://a"}),
    ("resources/unsubscribe", {"uri": "first://a"}),
]


def test_the_versions_are_those_of_the_official_types() -> None:
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == messages.HANDSHAKE_VERSIONS
    assert tuple(MODERN_PROTOCOL_VERSIONS) == messages.MODERN_VERSIONS


def test_the_methods_are_those_of_the_official_types() -> None:
    rows = {name: row for name, row in messages.METHODS.items() if row.needs != "skills"}  # of an extension
    ours = {(name, version) for name, row in rows.items() for era in row.eras for version in era.versions}
    assert set(SERVER_RESULTS) == ours


@pytest.mark.parametrize(("method", "params"), IN_MODERN)
def test_a_modern_result_is_one_of_the_official_types_and_nothing_more(
    server: Served, method: str, params: dict[str, Any]
) -> None:
    found = send(server.port, modern(method, meta_=meta(clientCapabilities=FORMS), **params)).body["result"]
    assert serialize_server_result(method, MODERN, found) == found


@pytest.mark.parametrize("version", messages.HANDSHAKE_VERSIONS)
@pytest.mark.parametrize(("method", "params"), IN_LEGACY)
def test_a_legacy_result_is_one_of_the_official_types_and_nothing_more(
    server: Served, method: str, params: dict[str, Any], version: str
) -> None:
    found = send(server.port, legacy(method, version=version, **params)).body["result"]
    assert serialize_server_result(method, version, found) == found


PARAMS: list[tuple[str, Any]] = [
    ("tools/call", {"name": "echo"}),
    ("tools/call", {"name": "echo", "arguments": None}),
    ("tools/call", {"name": "echo", "arguments": []}),
    ("tools/call", {"name": "echo", "arguments": 1}),
    ("tools/call", {"name": 1}),
    ("tools/call", {"name": None}),
    ("tools/call", {}),
    ("tools/call", {"name": "echo", "more": 1}),
    ("tools/list", {"cursor": None}),
    ("tools/list", {"cursor": 1}),
    ("tools/list", {"cursor": []}),
    ("resources/list", {"cursor": {}}),
    ("resources/read", {}),
    ("resources/read", {"uri": 1}),
    ("prompts/get", {"name": "greeting", "arguments": {"name": "Ada"}}),
    ("prompts/get", {"name": "greeting", "arguments": {"name": 1}}),
    ("prompts/get", {"name": "greeting", "arguments": {"name": None}}),
    ("prompts/get", {"name": "greeting", "arguments": []}),
    ("prompts/get", {}),
    ("completion/complete", REF),
    ("completion/complete", {**REF, "context": None}),
    ("completion/complete", {**REF, "context": {"arguments": None}}),
    ("completion/complete", {**REF, "context": {"arguments": {"tone": "kind"}}}),
    ("completion/complete", {**REF, "context": {"arguments": {"tone": 1}}}),
    ("completion/complete", {**REF, "ref": {"type": "ref/other", "name": "greeting"}}),
    ("completion/complete", {**REF, "ref": {"type": "ref/resource", "name": "greeting"}}),
    ("completion/complete", {**REF, "ref": {"name": "greeting"}}),
    ("completion/complete", {**REF, "argument": {"name": "name"}}),
    ("completion/complete", {**REF, "argument": {"name": "name", "value": 1}}),
    ("completion/complete", {"ref": REF["ref"]}),
]
LEGACY_PARAMS: list[tuple[str, Any]] = [
    *PARAMS,
    ("ping", {}),
    ("ping", {"_meta": None}),
    ("ping", {"_meta": {"progressToken": None}}),
    ("ping", {"_meta": {"progressToken": []}}),
    ("ping", {"_meta": 1}),
    ("logging/setLevel", {"level": "loud"}),
    ("logging/setLevel", {}),
    ("resources/subscribe", {}),
    ("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}),
    ("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "a"}}),
    ("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "a", "version": 1}}),
    ("initialize", {"protocolVersion": LEGACY, "capabilities": [], "clientInfo": CLIENT}),
    ("initialize", {"protocolVersion": LEGACY, "capabilities": {"sampling": None}, "clientInfo": CLIENT}),
    ("initialize", {"protocolVersion": LEGACY, "capabilities": {"sampling": 1}, "clientInfo": CLIENT}),
    ("initialize", {"protocolVersion": 1, "capabilities": {}, "clientInfo": CLIENT}),
    ("initialize", {"capabilities": {}, "clientInfo": CLIENT}),
]
METAS: list[Any] = [
    {},
    None,
    1,
    meta(),
    meta(clientInfo=None),
    meta(clientInfo={"name": "a"}),
    meta(clientInfo={"version": "1"}),
    meta(clientInfo={"name": "a", "version": "1", "icons": [{"src": "x"}]}),
    meta(clientInfo={"name": "a", "version": "1", "icons": [{}]}),
    meta(clientInfo={"name": "a", "version": "1", "icons": [{"src": "x", "theme": "blue"}]}),
    meta(clientInfo={"name": "a", "version": "1", "title": 1}),
    meta(clientCapabilities=None),
    meta(clientCapabilities=1),
    meta(clientCapabilities={"elicitation": None, "roots": {}}),
    meta(clientCapabilities={"elicitation": {"form": None, "url": {}}}),
    meta(clientCapabilities={"elicitation": {"form": 1}}),
    meta(clientCapabilities={"sampling": {"tools": []}}),
    meta(clientCapabilities={"extensions": {"x": {}}}),
    meta(clientCapabilities={"extensions": {"x": 1}}),
    meta(clientCapabilities={"experimental": {"x": {"y": 1}}}),
    meta(clientCapabilities={"unknown": 1}),
    meta(logLevel=None),
    meta(logLevel="debug"),
    meta(logLevel="DEBUG"),
    meta(progressToken=1),
    meta(progressToken="a"),
    meta(progressToken={}),
    meta(traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
]


def accepted(method: str, version: str, params: dict[str, Any] | None) -> bool:
    try:
        validate_client_request(method, version, params)
    except pydantic.ValidationError:
        return False
    return True


def refused(answer: Any) -> bool:
    """Whether the params were refused as such, not for the thing that they name."""
    code = answer.body.get("error", {}).get("code")
    return (code in (-32600, -32602) and "nvalid params" in answer.body["error"]["message"]) or code == -32600


@pytest.mark.parametrize(("method", "params"), LEGACY_PARAMS)
def test_legacy_params_are_refused_exactly_where_the_official_types_refuse_them(
    server: Served, method: str, params: dict[str, Any]
) -> None:
    found = send(server.port, legacy(method, **params))
    assert refused(found) is not accepted(method, LEGACY, params)


@pytest.mark.parametrize(("method", "params"), PARAMS)
def test_modern_params_are_refused_exactly_where_the_official_types_refuse_them(
    server: Served, method: str, params: dict[str, Any]
) -> None:
    found = send(server.port, modern(method, **params))
    assert refused(found) is not accepted(method, MODERN, {**params, "_meta": meta()})


@pytest.mark.parametrize("given", METAS)
def test_a_modern_envelope_is_refused_exactly_where_the_official_types_refuse_it(server: Served, given: Any) -> None:
    _, headers = modern("tools/list")
    found = send(server.port, (message("tools/list", {"_meta": given}), headers))
    assert (found.status == 400) is not accepted("tools/list", MODERN, {"_meta": given})


@pytest.mark.parametrize("method", ["ping", "tools/list", "prompts/list", "resources/list"])
@pytest.mark.parametrize("version", [None, LEGACY])
def test_legacy_requests_that_need_no_params_may_leave_them_out(
    server: Served, method: str, version: str | None
) -> None:
    assert accepted(method, LEGACY, None)
    _, headers = legacy(method)
    assert "result" in send(server.port, (message(method), changed(headers, mcp_protocol_version=version))).body

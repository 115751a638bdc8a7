"""The methods of MCP in each era: tools, lists, resources, prompts, completions, input requests, streams."""

import json
from typing import Any

import pytest

from kernel.core.config import VERSION
from kernel.core.ids import utc_now
from kernel.mcp import elicitation, messages
from kernel.mcp.listings import WHEN_TO_RECALL, WHEN_TO_STORE
from kernel.mcp.messages import HANDSHAKE_VERSIONS
from tests.http import mcp_fixture
from tests.http.http_requests import (
    BASIC,
    LEGACY,
    Answer,
    changed,
    complete,
    error,
    exchange,
    legacy,
    message,
    meta,
    modern,
    result,
    send,
    text,
)
from tests.http.mcp_fixture import FIRST, SECOND, Served

SERVER = {"name": "quipu", "title": "Quipu", "version": VERSION}
ABOUT = "\n\n".join([f"{WHEN_TO_RECALL} {WHEN_TO_STORE}", "first: The first of two.", "second: The second of two."])
OFFERED = {"completions": {}, "prompts": {}, "resources": {}, "tools": {}}
STATIC = {"ttlMs": 3_600_000, "cacheScope": "public"}
FRESH = {"ttlMs": 0, "cacheScope": "private"}
MAKES = (legacy, modern)
TOO_OLD = "This needs to ask you something first, which takes a client of protocol version 2026-07-28."
BOTH = pytest.mark.parametrize("make", MAKES)


def answered(make: Any, /, kind: str = "complete", cache: dict[str, Any] | None = None, **fields: Any) -> Answer:
    """A success in either era; only the modern one says how long it may be kept."""
    return Answer(200, result(**fields) if make is legacy else complete(kind=kind, **fields, **(cache or {})))


def failed(make: Any, code: int, reason: str, data: Any = None) -> Answer:
    """An error in either era; only the modern era has a status for it."""
    return Answer(200 if make is legacy else messages.MODERN.http.get(code, 200), error(code, reason, data))


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
@pytest.mark.parametrize("header", [None, *HANDSHAKE_VERSIONS])
def test_initialize_accepts_each_handshake_version(server: Served, version: str, header: str | None) -> None:
    asked = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    body, headers = legacy("initialize", **asked)
    expected = result(protocolVersion=version, capabilities=offered(legacy), serverInfo=SERVER, instructions=ABOUT)
    assert send(server.port, (body, changed(headers, mcp_protocol_version=header))) == (200, expected)


def offered(make: Any) -> dict[str, Any]:
    return {**OFFERED, "logging": {}, "resources": {"subscribe": True}} if make is legacy else OFFERED


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", ""])
def test_initialize_offers_the_newest_version_for_an_unknown_one(server: Served, version: str) -> None:
    asked = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": {"name": "a", "version": "1"}}
    found = send(server.port, legacy("initialize", **asked))
    assert found.body["result"]["protocolVersion"] == LEGACY


@pytest.mark.parametrize("lacking", ["protocolVersion", "capabilities", "clientInfo"])
def test_initialize_requires_all_three_parameters(server: Served, lacking: str) -> None:
    asked = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    del asked[lacking]
    expected = failed(legacy, -32602, f"Invalid params: Object missing required field `{lacking}`")
    assert send(server.port, legacy("initialize", **asked)) == expected


def test_discover_returns_versions_capabilities_and_instructions(server: Served) -> None:
    expected = {"supportedVersions": ["2026-07-28"], "capabilities": OFFERED, "instructions": ABOUT}
    assert send(server.port, modern("server/discover")) == answered(modern, cache=STATIC, **expected)


def test_service_declares_only_its_capabilities(server: Served) -> None:
    found = send(server.port, modern("server/discover"), path="/mcp/plain")
    assert found == answered(modern, cache=STATIC, supportedVersions=["2026-07-28"], capabilities={"tools": {}})


@pytest.mark.parametrize(
    "method",
    [
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "nonsense",
        "tasks/list",
        "subscriptions/listen",
    ],
)
@BOTH
def test_method_of_an_undeclared_capability_is_not_found(server: Served, make: Any, method: str) -> None:
    valid = {
        "uri": "x",
        "name": "x",
        "notifications": {},
        "ref": {"type": "ref/prompt", "name": "x"},
        "argument": {"name": "", "value": ""},
    }
    found = send(server.port, make(method, **valid), path="/mcp/plain")
    assert found == failed(make, -32601, "Method not found")


@pytest.mark.parametrize(
    ("make", "method"),
    [
        (modern, "initialize"),
        (modern, "ping"),
        (modern, "logging/setLevel"),
        (modern, "resources/subscribe"),
        (modern, "resources/unsubscribe"),
        (legacy, "server/discover"),
        (legacy, "subscriptions/listen"),
    ],
)
def test_method_of_the_other_era_is_not_found(server: Served, make: Any, method: str) -> None:
    assert send(server.port, make(method)) == failed(make, -32601, "Method not found")


def test_a_ping_is_answered_with_or_without_params(server: Served) -> None:
    assert send(server.port, legacy("ping")) == (200, result())
    assert send(server.port, (message("ping", {"_meta": {"progressToken": 1}}), [*BASIC])) == (200, result())
    assert send(server.port, (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', [*BASIC])) == (200, result())


def test_params_that_are_not_an_object_are_an_invalid_request(server: Served) -> None:
    found = send(server.port, (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', [*BASIC]))
    assert found == (400, error(-32600, "params must be an object"))


def test_set_level_is_accepted_without_effect(server: Served) -> None:
    assert send(server.port, legacy("logging/setLevel", level="error")) == (200, result())
    expected = "Invalid params: Invalid enum value 'loud' - at `level`"
    assert send(server.port, legacy("logging/setLevel", level="loud")) == failed(legacy, -32602, expected)
    found = send(server.port, legacy("logging/setLevel", level="error"), path="/mcp/plain")
    assert found == failed(legacy, -32601, "Method not found")


@BOTH
def test_tools_are_listed_in_order_with_their_schemas(server: Served, make: Any) -> None:
    value = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    echo = {
        "name": "echo",
        "title": "Echo",
        "description": "Says it back.",
        "inputSchema": value,
        "outputSchema": value,
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
    writing = {"readOnlyHint": False, "openWorldHint": False}
    found = send(server.port, make("tools/list"))
    tools = found.body["result"]["tools"]
    assert found == answered(make, tools=tools, cache=STATIC)
    assert [tool["name"] for tool in tools] == [tool.name for dialect in (FIRST, SECOND) for tool in dialect.tools]
    by_name = {tool["name"]: tool for tool in tools}
    assert by_name["echo"] == echo
    assert by_name["keep"]["annotations"] == {**writing, "destructiveHint": True, "idempotentHint": False}
    assert by_name["fail"]["annotations"] == {**writing, "destructiveHint": False, "idempotentHint": True}
    assert "outputSchema" not in by_name["count"]


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/templates/list", "resources/list"])
@pytest.mark.parametrize("cursor", ["1", "bm9uZQ==", "WzksbnVsbF0=", "\u20ac"])
@BOTH
def test_unknown_cursor_is_refused(server: Served, make: Any, method: str, cursor: str) -> None:
    assert send(server.port, make(method, cursor=cursor)) == failed(make, -32602, "Unknown cursor")


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/templates/list", "resources/list"])
@pytest.mark.parametrize("cursor", ["", None])
@BOTH
def test_empty_cursor_is_the_first_page(server: Served, make: Any, method: str, cursor: str | None) -> None:
    assert send(server.port, make(method, cursor=cursor)) == send(server.port, make(method))


@pytest.mark.parametrize("arguments", [{"text": "hi"}, {"text": "hi", "more": 1}, {"text": 'é€\U0001f600 "\\\n'}])
@BOTH
def test_call_returns_text_and_structured_content(server: Served, make: Any, arguments: Any) -> None:
    value = arguments["text"]
    expected = answered(make, **text(value, structuredContent={"text": value}))
    assert send(server.port, make("tools/call", name="echo", arguments=arguments)) == expected


@BOTH
def test_structured_content_may_be_a_non_object_only_in_the_modern_era(server: Served, make: Any) -> None:
    expected = text('"3"') if make is legacy else text('"3"', structuredContent=3)
    assert send(server.port, make("tools/call", name="count")) == answered(make, **expected)


@pytest.mark.parametrize("arguments", [{}, None])
@BOTH
def test_tool_may_return_content_blocks_and_take_no_arguments(server: Served, make: Any, arguments: Any) -> None:
    blocks = [{"type": "text", "text": "shown"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]
    expected = answered(make, content=blocks, isError=False)
    assert send(server.port, make("tools/call", name="show", arguments=arguments)) == expected


@BOTH
def test_unknown_tool_is_a_protocol_error(server: Served, make: Any) -> None:
    assert send(server.port, make("tools/call", name="zzz")) == failed(make, -32602, "Unknown tool: zzz")
    long = send(server.port, make("tools/call", name="x" * 1000))
    assert long == failed(make, -32602, f"Unknown tool: {'x' * 128}")
    near = send(server.port, make("tools/call", name="Whispr"))
    assert near == failed(make, -32602, "Unknown tool: Whispr, did you mean whisper?")


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"name": "echo", "arguments": []}, "arguments must be an object"),
        ({"name": "echo", "arguments": "{}"}, "arguments must be an object"),
        ({"name": "echo", "arguments": 0}, "arguments must be an object"),
        ({"arguments": {}}, "Object missing required field `name`"),
        ({"name": 1}, "Expected `string`, got `integer` - at `name`"),
        ({"name": None}, "Expected `string`, got `null` - at `name`"),
    ],
)
@BOTH
def test_malformed_call_is_a_protocol_error(server: Served, make: Any, params: Any, reason: str) -> None:
    assert send(server.port, make("tools/call", **params)) == failed(make, -32602, f"Invalid params: {reason}")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "missing required field `text`; expects string"),
        ({"text": 1}, "expected `string`, got `integer` - at `text`"),
    ],
)
@BOTH
def test_invalid_arguments_are_a_result_worded_by_the_dialect(
    server: Served, make: Any, arguments: Any, reason: str
) -> None:
    expected = {**text(f"Sorry: Invalid arguments: {reason}"), "isError": True}
    assert send(server.port, make("tools/call", name="echo", arguments=arguments)) == answered(make, **expected)  # pyrefly: ignore[bad-argument-type]


@pytest.mark.parametrize(
    "code", ["invalid", "not_found", "conflict", "blocked", "disabled", "busy", "storage", "internal"]
)
@BOTH
def test_fault_is_an_error_result_without_structured_content(server: Served, make: Any, code: str) -> None:
    expected = {**text(f"Sorry: It is {code}."), "isError": True}
    found = send(server.port, make("tools/call", name="fail", arguments={"code": code}))
    assert found == answered(make, **expected)  # pyrefly: ignore[bad-argument-type]


@BOTH
def test_unexpected_error_does_not_reach_the_client(server: Served, make: Any) -> None:
    expected = {**text("Sorry: Internal error."), "isError": True}
    assert send(server.port, make("tools/call", name="crash")) == answered(make, **expected)  # pyrefly: ignore[bad-argument-type]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("agent", "agent"),
        ("x" * 100, "x" * 64),
        ("a\u200b\nb", "ab"),
        ("", "anonymous"),
        ("\t" * 300 + "late", "anonymous"),
    ],
)
def test_modern_actor_is_the_client_name(server: Served, name: str, kept: str) -> None:
    given = meta(clientInfo={"name": name, "version": "1"})
    found = send(server.port, modern("tools/call", name="keep", arguments={"text": ""}, meta_=given))
    assert found.body["result"]["structuredContent"] == {"by": kept}


def test_legacy_actor_over_http_is_anonymous(server: Served) -> None:
    found = send(server.port, legacy("tools/call", name="keep", arguments={"text": ""}))
    assert found.body["result"]["structuredContent"] == {"by": "anonymous"}


@BOTH
def test_resources_are_paged_through_all_dialects(server: Served, make: Any) -> None:
    pages, cursor = [], None
    while not pages or cursor is not None:
        found = send(server.port, make("resources/list", cursor=cursor))
        fields = found.body["result"]
        cursor = fields.get("nextCursor")
        pages.append(fields["resources"])
        expected = {"resources": pages[-1], **({} if cursor is None else {"nextCursor": cursor})}
        assert found == answered(make, cache=FRESH, **expected)
    first = {"uri": "first://a", "name": "a", "title": "A", "description": "The first", "mimeType": "text/plain"}
    assert pages == [
        [{**first, "size": 1, "annotations": {"lastModified": "2026-01-02T03:04:05Z"}}],
        [{"uri": "first://b", "name": "b", "mimeType": "application/octet-stream"}],
        [{"uri": "first://second/c", "name": "c", "mimeType": "text/plain"}],
    ]


@BOTH
def test_the_templates_are_listed(server: Served, make: Any) -> None:
    one = {"uriTemplate": "first://{name}", "name": "any", "title": "Any", "description": "Any of them"}
    expected = answered(make, resourceTemplates=[{**one, "mimeType": "text/plain"}], cache=STATIC)
    assert send(server.port, make("resources/templates/list")) == expected


@pytest.mark.parametrize(
    ("uri", "held"),
    [
        ("first://a", {"mimeType": "text/plain", "text": "A"}),
        ("first://b", {"mimeType": "x/y", "blob": "AEI="}),
        ("first://second/c", {"mimeType": "text/plain", "text": "C"}),
    ],
)
@BOTH
def test_resource_is_read_from_the_dialect_with_the_longest_matching_scheme(
    server: Served, make: Any, uri: str, held: Any
) -> None:
    expected = answered(make, contents=[{"uri": uri, **held}], cache=FRESH)
    assert send(server.port, make("resources/read", uri=uri)) == expected


@pytest.mark.parametrize("uri", ["first://nothing", "other://a", "", "../a"])
@BOTH
def test_missing_resource_has_the_code_of_its_era(server: Served, make: Any, uri: str) -> None:
    code = -32002 if make is legacy else -32602
    expected = failed(make, code, "Resource not found", {"uri": uri})
    assert send(server.port, make("resources/read", uri=uri)) == expected


@BOTH
def test_unexpected_error_in_a_resource_is_an_internal_error(server: Served, make: Any) -> None:
    assert send(server.port, make("resources/read", uri="first://broken")) == failed(make, -32603, "Internal error.")


@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
def test_legacy_subscription_is_accepted(server: Served, method: str) -> None:
    assert send(server.port, legacy(method, uri="first://a")) == (200, result())


@BOTH
def test_the_prompts_are_listed_with_their_arguments(server: Served, make: Any) -> None:
    found = send(server.port, make("prompts/list"))
    prompts = found.body["result"]["prompts"]
    assert found == answered(make, prompts=prompts, cache=STATIC)
    arguments = [{"name": "name", "description": "Whom", "required": True}, {"name": "tone", "required": False}]
    shown = {"name": "greeting", "title": "Greeting", "description": "Greets a person.", "arguments": arguments}
    assert prompts[0] == shown
    assert [prompt["name"] for prompt in prompts] == ["greeting", "dialogue", "garbled"]


@BOTH
def test_prompt_is_returned_with_its_arguments(server: Served, make: Any) -> None:
    value = [{"role": "user", "content": {"type": "text", "text": "Greet Ada"}}]
    found = send(server.port, make("prompts/get", name="greeting", arguments={"name": "Ada"}))
    assert found == answered(make, description="Greets a person.", messages=value)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"name": "absent"}, "Unknown prompt: absent"),
        ({"name": "greeting"}, "Missing prompt arguments: name"),
        ({"name": "greeting", "arguments": {"tone": "kind"}}, "Missing prompt arguments: name"),
        (
            {"name": "greeting", "arguments": {"name": 1}},
            "Invalid params: Expected `string`, got `integer` - at `arguments[...]`",
        ),
        ({}, "Invalid params: Object missing required field `name`"),
    ],
)
@BOTH
def test_prompt_with_missing_arguments_is_refused(server: Served, make: Any, params: Any, reason: str) -> None:
    assert send(server.port, make("prompts/get", **params)) == failed(make, -32602, reason)


@BOTH
def test_a_prompt_that_is_not_json_is_an_internal_error(server: Served, make: Any) -> None:
    assert send(server.port, make("prompts/get", name="garbled")) == failed(make, -32603, "Internal error.")


@pytest.mark.parametrize(
    ("ref", "start"),
    [
        ({"type": "ref/prompt", "name": "greeting"}, "greeting name A"),
        ({"type": "ref/resource", "uri": "first://{name}"}, "first://{name} name A"),
    ],
)
@BOTH
def test_a_completion_shows_a_hundred_values_and_says_there_are_more(
    server: Served, make: Any, ref: Any, start: str
) -> None:
    values = [f"{start}{number} 1" for number in range(100)]
    asked = {"ref": ref, "argument": {"name": "name", "value": "A"}, "context": {"arguments": {"tone": "kind"}}}
    expected = answered(make, completion={"values": values, "total": 150, "hasMore": True})
    assert send(server.port, make("completion/complete", **asked)) == expected


@pytest.mark.parametrize("uri", ["other://{name}", "first://second/{name}"])
@BOTH
def test_completion_without_a_completer_is_empty(server: Served, make: Any, uri: str) -> None:
    asked = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "name", "value": ""}}
    expected = answered(make, completion={"values": [], "total": 0, "hasMore": False})
    assert send(server.port, make("completion/complete", **asked)) == expected


@BOTH
def test_a_completion_for_an_unknown_prompt_or_kind_is_refused(server: Served, make: Any) -> None:
    argument = {"name": "name", "value": ""}
    asked = {"ref": {"type": "ref/prompt", "name": "absent"}, "argument": argument}
    assert send(server.port, make("completion/complete", **asked)) == failed(make, -32602, "Unknown prompt: absent")
    asked = {"ref": {"type": "ref/tool", "name": "echo"}, "argument": argument}
    expected = failed(make, -32602, "Invalid params: Invalid value 'ref/tool' - at `ref.type`")
    assert send(server.port, make("completion/complete", **asked)) == expected


def note(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


ONE = note("progress", progressToken="t", progress=1.0, total=3.0, message="one")
TWO = note("progress", progressToken="t", progress=2.0)
DEBUG = note("message", level="debug", logger="first", data={"detail": "hi"})
ERROR = note("message", level="error", logger="first", data="hi")


@pytest.mark.parametrize(
    ("make", "more", "expected"),
    [
        (legacy, {}, [ERROR]),
        (legacy, {"progressToken": "t"}, [ONE, TWO, ERROR]),
        (modern, {"progressToken": "t"}, [ONE, TWO]),
        (modern, {"logLevel": "debug"}, [DEBUG, ERROR]),
        (modern, {"logLevel": "error", "progressToken": "t"}, [ONE, TWO, ERROR]),
    ],
)
def test_notifications_precede_the_answer_on_a_stream(
    server: Served, make: Any, more: Any, expected: list[Any]
) -> None:
    given = {"_meta": more} if make is legacy else {"meta_": meta(**more)}
    found = exchange(server.port, *make("tools/call", name="report", arguments={"text": "hi"}, **given))
    last = answered(make, **text("hi", structuredContent={"text": "hi"}))
    assert (found.status, found.body) == (200, [*expected, last.body])
    shown = {name: found.headers[name] for name in ("content-type", "cache-control", "x-accel-buffering")}
    assert shown == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
    }


def test_response_is_json_when_no_notification_was_requested(server: Served) -> None:
    expected = answered(modern, **text("hi", structuredContent={"text": "hi"}))
    assert send(server.port, modern("tools/call", name="report", arguments={"text": "hi"})) == expected
    given = meta(logLevel="critical")
    assert send(server.port, modern("tools/call", name="report", arguments={"text": "hi"}, meta_=given)) == expected


@pytest.mark.parametrize(("accept", "media"), [("application/json", "application/json"), ("*/*", "text/event-stream")])
def test_response_is_json_when_the_client_does_not_accept_a_stream(server: Served, accept: str, media: str) -> None:
    given = meta(progressToken=10**30)
    body, headers = modern("tools/call", name="report", arguments={"text": "hi"}, meta_=given)
    found = exchange(server.port, body, changed(headers, accept=accept))
    assert (found.status, found.headers["content-type"]) == (200, media)
    value = (
        {message["params"]["progressToken"] for message in found.body[:-1]} if isinstance(found.body, list) else None
    )
    assert value == (None if media == "application/json" else {10**30})


@BOTH
def test_a_token_and_a_level_alone_do_not_make_a_stream(server: Served, make: Any) -> None:
    more = {"progressToken": 7, "logLevel": "debug"}
    given = {"_meta": more} if make is legacy else {"meta_": meta(**more)}
    expected = answered(make, **text("hi", structuredContent={"text": "hi"}))
    for name in ("silent", "echo"):
        assert send(server.port, make("tools/call", name=name, arguments={"text": "hi"}, **given)) == expected


FORMS = {"elicitation": {}}


def round_of(name: str, arguments: Any, offers: Any = None, **more: Any) -> tuple[Any, Any]:
    given = meta(clientCapabilities=FORMS if offers is None else offers)
    return modern("tools/call", name=name, arguments=arguments, meta_=given, **more)


def accepted(name: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": name}}


def question(key: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return {
        key: {
            "method": "elicitation/create",
            "params": {"message": "Who?", "mode": "form", "requestedSchema": schema},
        }
    }


def test_interactive_tool_gets_its_state_back_in_each_round(server: Served) -> None:
    arguments = {"text": "Hi"}
    first = send(server.port, round_of("ask", arguments)).body["result"]
    asked = complete(kind="input_required", inputRequests=question("name-0"), requestState=first["requestState"])
    assert first == asked["result"]
    answer = {"inputResponses": {"name-0": accepted("Ada")}, "requestState": first["requestState"]}
    second = send(server.port, round_of("ask", arguments, **answer)).body["result"]
    asked = complete(kind="input_required", inputRequests=question("name-1"), requestState=second["requestState"])
    assert second == asked["result"]
    answer = {"inputResponses": {"name-1": accepted("Bob")}, "requestState": second["requestState"]}
    reordered = round_of("ask", {"text": "Hi"}, {"elicitation": {"form": {}, "url": {}}}, **answer)
    value = "Hi Ada and Bob"
    assert send(server.port, reordered) == (200, complete(**text(value, structuredContent={"text": value})))


def test_state_and_responses_for_other_tools_are_ignored(server: Served) -> None:
    answer = {"inputResponses": 7, "requestState": {"not": "ours"}}
    expected = complete(**text("hi", structuredContent={"text": "hi"}))
    assert send(server.port, modern("tools/call", name="echo", arguments={"text": "hi"}, **answer)) == (200, expected)
    found = send(server.port, legacy("tools/call", name="ask", arguments={"text": "hi"}, **answer))
    assert found == (200, result(**{**text(f"Sorry: {TOO_OLD}"), "isError": True}))


@pytest.mark.parametrize(
    ("offers", "lacking"),
    [
        ({}, {"sampling": {}, "roots": {}, "elicitation": {"url": {}}}),
        ({"elicitation": {"form": {}}, "roots": {}}, {"sampling": {}, "elicitation": {"url": {}}}),
        ({"elicitation": {"url": {}}, "sampling": {}}, {"roots": {}}),
    ],
)
def test_input_request_requires_the_declared_capability(server: Served, offers: Any, lacking: Any) -> None:
    reason = f"The client must declare: {', '.join(lacking)}"
    expected = (400, error(-32021, reason, {"requiredCapabilities": lacking}))
    assert send(server.port, round_of("demand", {}, offers)) == expected


def test_form_elicitation_requires_the_form_capability(server: Served) -> None:
    lacking = {"elicitation": {"form": {}}}
    expected = (400, error(-32021, "The client must declare: elicitation", {"requiredCapabilities": lacking}))
    assert send(server.port, round_of("ask", {"text": ""}, {"elicitation": {"url": {}}})) == expected
    assert send(server.port, round_of("ask", {"text": ""}, {})) == expected


def test_client_with_all_capabilities_gets_all_input_requests(server: Served) -> None:
    offers = {"elicitation": {"url": {}}, "sampling": {"tools": {}}, "roots": {}}
    found = send(server.port, round_of("demand", {}, offers))
    asked = found.body["result"]["inputRequests"]
    assert found == (200, complete(kind="input_required", inputRequests=asked))
    assert {key: value["method"] for key, value in asked.items()} == {
        "model": "sampling/createMessage",
        "roots": "roots/list",
        "page": "elicitation/create",
    }


def test_input_request_that_is_not_json_is_an_internal_error_worded_by_the_dialect(server: Served) -> None:
    expected = complete(**{**text("Sorry: Internal error."), "isError": True})  # pyrefly: ignore[bad-argument-type]
    assert send(server.port, round_of("ramble", {})) == (200, expected)


def belonging(**other: Any) -> str:
    mine = {"actor": "tester", "method": "tools/call", "name": "ask", "arguments": b'{"text":"Hi"}'}
    return elicitation.purpose(**{**mine, **other})  # pyrefly: ignore[bad-argument-type]


STATES = {
    "another key": lambda: elicitation.seal(b"another", ["Ada"], belonging(), utc_now()),
    "another tool": lambda: elicitation.seal(mcp_fixture.KEY, ["Ada"], belonging(name="report"), utc_now()),
    "another actor": lambda: elicitation.seal(mcp_fixture.KEY, ["Ada"], belonging(actor="mallory"), utc_now()),
    "another method": lambda: elicitation.seal(mcp_fixture.KEY, ["Ada"], belonging(method="prompts/get"), utc_now()),
    "other arguments": lambda: elicitation.seal(mcp_fixture.KEY, ["Ada"], belonging(arguments=b"{}"), utc_now()),
    "another day": lambda: elicitation.seal(mcp_fixture.KEY, ["Ada"], belonging(), "2026-01-02T03:04:05.678Z"),
    "nothing": lambda: "",
    "noise": lambda: "v1.\u20ac.x",
    "a part": lambda: elicitation.seal(mcp_fixture.KEY, ["Ada"], belonging(), utc_now())[:-1],
}


@pytest.mark.parametrize("which", STATES)
def test_state_of_another_request_is_refused(server: Served, which: str) -> None:
    found = send(server.port, round_of("ask", {"text": "Hi"}, requestState=STATES[which]()))
    assert found == (400, error(-32602, "Invalid or expired requestState"))


def test_own_state_is_accepted(server: Served) -> None:
    state = elicitation.seal(mcp_fixture.KEY, ["Ada", "Bob"], belonging(), utc_now())
    value = "Hi Ada and Bob"
    expected = complete(**text(value, structuredContent={"text": value}))
    assert send(server.port, round_of("ask", {"text": "Hi"}, requestState=state)) == (200, expected)


@pytest.mark.parametrize("more", [{"requestState": 7}, {"inputResponses": []}, {"inputResponses": {"name-0": 1}}])
def test_rounds_of_the_wrong_shape_are_refused(server: Served, more: Any) -> None:
    found = send(server.port, round_of("ask", {"text": "Hi"}, **more))
    assert found == (400, error(-32602, f"Invalid params: {next(iter(more))} is malformed"))


def test_prompt_may_request_input(server: Served) -> None:
    given = meta(clientCapabilities=FORMS)
    first = send(server.port, modern("prompts/get", name="dialogue", meta_=given)).body["result"]
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": "Who?", "mode": "form", "requestedSchema": schema}
    asked = {"name": {"method": "elicitation/create", "params": params}}
    state = first["requestState"]
    assert first == complete(kind="input_required", inputRequests=asked, requestState=state)["result"]
    answer = {"inputResponses": {"name": accepted("Ada")}, "requestState": state}
    value = [{"role": "assistant", "content": {"type": "text", "text": "asked Ada"}}]
    found = send(server.port, modern("prompts/get", name="dialogue", meta_=given, **answer))
    assert found == (200, complete(description="Asks first.", messages=value))


def test_prompt_that_requests_input_needs_the_modern_era(server: Served) -> None:
    assert send(server.port, legacy("prompts/get", name="dialogue")) == failed(legacy, -32602, TOO_OLD)


def test_the_largest_body_allowed_is_served(server: Served) -> None:
    body, headers = legacy("tools/call", name="echo", arguments={"text": ""})
    room = mcp_fixture.LIMITS.body - len(json.dumps(body))
    body["params"]["arguments"]["text"] = "x" * room
    found = send(server.port, (body, headers))
    assert found.body["result"]["structuredContent"] == {"text": "x" * room}

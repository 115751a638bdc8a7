"""The scope matrix: every action of every tool, by everybody there is, is answered exactly as the table has it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kernel.core.config import Config
from kernel.security import api_keys as keys
from kernel.security.permissions import Permission
from kernel.server import app
from tests.catalogue import Catalogue
from tests.security.authenticated_server import EXPIRED, LEGACY, MODERN, House, house
from tests.security.calls import CALLS, REST_CALLS, Call
from tests.support.security_scopes import DIALECTS, PERMISSIONS, needed, rows, told

STRANGERS = ("none", "wrong", "expired", "revoked")
OWNERS = {tool: name for name, tools in DIALECTS.items() for tool in tools}


class Served(NamedTuple):
    """A server and a key for each kind of caller."""

    house: House
    keys: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("scopes") / "data"
    with house(Config(data=data, model=None, dialects=tuple(DIALECTS))) as running:
        made = {scope: running.key(scope, "acme") for scope in ("read", "write", "admin")}
        made |= {"elsewhere": running.key("admin", "other"), "expired": running.key("admin", "acme", expires=EXPIRED)}
        made |= {"revoked": running.key("admin", "acme"), "none": ""}
        made["wrong"] = made["admin"][:-1] + ("A" if made["admin"][-1] != "A" else "B")
        keys.revoke(data, keys.parse(made["revoked"]), EXPIRED)
        made |= {f"{dialect} alone": running.key("admin", "acme", dialects=(dialect,)) for dialect in DIALECTS}
        running.told()
        yield Served(running, made)


def verdict(call: Call, caller: str) -> tuple[int, str]:
    """The status and the scope a caller must be answered with; 0 where the tool itself answers."""
    if caller in STRANGERS:
        return 401, "read"
    allowed = Permission.admin if caller == "elsewhere" else Permission[caller]
    return (0, "") if needed(call) <= allowed else (403, needed(call).name)


CALLERS = ("none", "wrong", "expired", "revoked", "read", "write", "admin", "elsewhere")


def but_audit(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row but of the audit, which records refusals."""
    return {name: found for name, found in rows(file).items() if not name.startswith("audit")}


def by_json(served: Served, call: Call, caller: str) -> Any:
    return served.house.tool(call[0], CALLS[call], served.keys[caller])


def by_modern(served: Served, call: Call, caller: str) -> Any:
    return served.house.call(call[0], CALLS[call], served.keys[caller], version=MODERN)


def by_legacy(served: Served, call: Call, caller: str) -> Any:
    return served.house.call(call[0], CALLS[call], served.keys[caller], version=LEGACY)


def test_every_rest_method_by_everybody_is_answered_as_its_row_has_it(served: Served, catalogue: Catalogue) -> None:
    methods = {(one.verb, one.path): one.tool for dialect in app.DIALECTS for one in dialect.rest}
    filled = {(verb, path.replace("{client}", "claude")): tool for (verb, path), tool in methods.items()}
    rights = {(verb, re.sub(r"{\w+}", "absent", path)): tool.permission for (verb, path), tool in filled.items()}
    assert set(REST_CALLS) == set(rights)
    wrong: list[Any] = []
    for caller in CALLERS:
        for (verb, path), given in REST_CALLS.items():
            body = None if given is None else json.dumps(given).encode()
            right = Permission[str(rights[verb, path])]
            enough = caller == "elsewhere" or (caller not in STRANGERS and right <= Permission[caller])
            answer = served.house.ask(verb, path, served.keys[caller], body, {"content-type": "application/json"})
            status = 401 if caller in STRANGERS else (403 if not enough else answer.status)
            if (answer.status, answer.status < 500, bool(answer.challenge)) != (status, True, not enough):
                wrong.append((caller, verb, path, answer))
            if enough and answer.status not in (200, 404):
                wrong.append((caller, verb, path, answer))
    assert wrong == []
    times = len(CALLERS) * len(REST_CALLS)
    catalogue("S06", injected="every REST method", times=times, outcome="as declared")


def test_the_calls_are_all_there_are() -> None:
    wanted = {
        (tool, action) for tool, entry in PERMISSIONS.items() for action in ([""] if isinstance(entry, str) else entry)
    }
    assert set(CALLS) == wanted


@pytest.mark.parametrize("way", [by_json, by_modern, by_legacy])
def test_every_call_by_everybody_is_answered_as_the_table_has_it(
    served: Served, way: Any, catalogue: Catalogue
) -> None:
    wrong: list[Any] = []
    for caller in CALLERS:
        for call in CALLS:
            answer = way(served, call, caller)
            status, scope = verdict(call, caller)
            seen = (answer.status if answer.challenge else 0, told(answer.challenge, "scope"))
            if seen != (status, scope) or answer.status >= 500:
                wrong.append((caller, call, answer))
    assert wrong == []
    times = len(CALLERS) * len(CALLS)
    catalogue("S06", injected=f"every action {way.__name__.replace('_', ' ')}", times=times, outcome="as declared")


def test_who_may_call_is_served_and_not_only_let_through(served: Served) -> None:
    """No call of the matrix proves nothing because its arguments were refused before anything was looked at."""
    misread = []
    for call in CALLS:
        answer = by_json(served, call, "admin")
        said = answer.body.decode()
        if answer.status == 400 and ("nvalid arguments" in said or "Missing" in said or "unknown field" in said):
            misread.append((call, said))
    assert misread == []


def test_a_refused_call_changes_nothing(served: Served) -> None:
    by_json(served, ("list_memories", ""), "admin")  # the file is there
    file = served.house.data / "tenants" / "acme" / "quipu.db"
    before = but_audit(file)
    for call in CALLS:
        for caller in ("none", "wrong", "read", "write"):
            if verdict(call, caller)[0]:
                assert by_json(served, call, caller).challenge
                assert by_modern(served, call, caller).challenge
    assert but_audit(file) == before


@pytest.mark.parametrize("caller", ["read", "write", "admin"])
def test_a_caller_is_shown_the_tools_of_which_it_may_call_something(served: Served, caller: str) -> None:
    least = {tool: min(needed(call) for call in CALLS if call[0] == tool) for tool in PERMISSIONS}
    expected = {tool for tool, right in least.items() if right <= Permission[caller]}
    key = served.keys[caller]
    assert served.house.listed(key) == expected
    tools = json.loads(served.house.ask("GET", "/tools", key).body)["tools"]
    assert {tool["name"] for tool in tools} == expected
    paths = json.loads(served.house.ask("GET", "/openapi.json", key).body)["paths"]
    assert {path.removeprefix("/tools/") for path in paths if path.startswith("/tools/")} == expected
    verbs = {verb for path, methods in paths.items() if path.startswith("/v1/") for verb in methods}
    assert verbs == ({"get"} if caller == "read" else {"get", "post", "delete"})
    assert served.house.listed(key, "/mcp/paths") == expected & DIALECTS["paths"]
    assert served.house.listed(key, "/mcp?tools=read") <= expected


def test_what_a_caller_is_shown_is_not_kept_for_another(served: Served) -> None:
    for method in ("tools/list", "server/discover", "resources/templates/list"):
        answer = served.house.mcp(method, {}, served.keys["read"])
        assert json.loads(answer.body)["result"]["cacheScope"] == "private", method


@pytest.mark.parametrize(
    ("tool", "arguments", "key"),
    [
        ("recall", {"query": "tea"}, "every dialect"),
        ("save_memory", {"db": "core", "content": "Tea.", "category": "fact"}, "brain"),
    ],
)
def test_a_key_for_one_dialect_is_told_which_key_would_do(
    served: Served, tool: str, arguments: dict[str, Any], key: str
) -> None:
    said = f"{tool} is out of reach: this key is for paths alone, {tool} takes a key for {key}"
    answers = [by(tool, arguments, served.keys["paths alone"]) for by in (served.house.tool, served.house.call)]
    assert [(answer.status, said in answer.body.decode()) for answer in answers] == [(403, True), (403, True)], answers


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_key_for_one_dialect_reaches_no_other(served: Served, dialect: str, catalogue: Catalogue) -> None:
    key = served.keys[f"{dialect} alone"]
    assert served.house.listed(key) == DIALECTS[dialect]
    wrong = []
    for call in CALLS:
        for answer in (served.house.tool(call[0], CALLS[call], key), served.house.call(call[0], CALLS[call], key)):
            kept_out = answer.status == 403 and told(answer.challenge, "error") == "insufficient_scope"
            if kept_out == (OWNERS[call[0]] == dialect):
                wrong.append((call, answer))
    assert wrong == []
    for other in DIALECTS:
        assert served.house.listed(key, f"/mcp/{other}") == (DIALECTS[dialect] if other == dialect else set())
    served.house.tool("add_memory", {"path": "car", "content": "In May."}, served.keys["admin"])
    paths = served.house.mcp("resources/read", {"uri": "memory://paths/car"}, key)
    assert (paths.status in {400, 404}) == (dialect != "paths")
    catalogue("S06", injected=f"a key for {dialect} alone", times=2 * len(CALLS), outcome="no other dialect reached")


SMUGGLED = {
    "the action twice, the harmless one first": b'{"action":"list","action":"create","name":"x"}',
    "the action twice, the harmless one last": b'{"action":"create","name":"x","action":"list"}',
    "an escaped name of the action": b'{"\\u0061ction":"create","name":"x"}',
    "an escaped action": b'{"action":"cr\\u0065ate","name":"x"}',
    "blanks everywhere": b' \n{ "action" : "create" ,\t"name" : "x" } ',
    "the action last": b'{"name":"x","action":"create"}',
    "not all arguments": b'{"action":"create"}',
    "an argument too many": b'{"action":"create","name":"x","more":1}',
    "the action in upper case": b'{"action":"CREATE","name":"x"}',
    "the action in a list": b'{"action":["create"],"name":"x"}',
    "a nested action": b'{"action":"list","name":{"action":"create"}}',
}


@pytest.mark.parametrize("name", SMUGGLED)
def test_an_action_cannot_be_smuggled_past_the_table(served: Served, name: str, catalogue: Catalogue) -> None:
    reader, headers = served.keys["read"], {"content-type": "application/json"}
    before = served.house.tool("memory_org", {"action": "list"}, reader).body
    answer = served.house.ask("POST", "/tools/memory_org", reader, SMUGGLED[name], headers)
    assert answer.status in {200, 400, 403}
    assert served.house.tool("memory_org", {"action": "list"}, reader).body == before
    catalogue("S06", injected=name, times=1, outcome="nothing was created")


@pytest.mark.parametrize("first", ["5", "null", "[]", '"zz"'])
def test_permission_is_checked_on_the_action_of_a_second_decoding(
    served: Served, first: str, catalogue: Catalogue
) -> None:
    admin, writer, headers = served.keys["admin"], served.keys["write"], {"content-type": "application/json"}
    kept = {"content": "The harbour opens at six.", "session_id": "s"}
    assert served.house.tool("remember", kept, admin).status == 200
    body = b'{"older_than_days":0.0,"action":%s,"confirm":true,"action":"prune_older_than"}' % first.encode()
    answer = served.house.ask("POST", "/tools/maintenance", writer, body, headers)
    assert answer.status == 403
    found = served.house.tool("search_memory", {"query": "harbour", "session_id": "s"}, admin)
    assert b"The harbour opens at six." in found.body
    catalogue("S06", injected=f"an action after {first} and a whole number", times=1, outcome="nothing was deleted")

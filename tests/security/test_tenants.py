"""Memories of one tenant do not exist for another: not by id, path, search, count, history, export, nor by a file."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kernel.core.config import Config
from tests.catalogue import Catalogue
from tests.security.authenticated_server import House, house
from tests.security.calls import CALLS
from tests.support.security_scopes import needed, rows

MARK = "zanzibar"  # stands in everything the owner keeps, and nowhere else
CORE = {"db": "core"}
Say = Callable[..., Any]


def sayer(running: House, key: str) -> Say:
    """`say(tool, **arguments)` is the answer, which is no error, decoded where it is JSON."""

    def say(tool: str, **arguments: Any) -> Any:
        answer = running.tool(tool, arguments, key)
        assert answer.status == 200, (tool, arguments, answer)
        return json.loads(answer.body) if "json" in answer.headers["content-type"] else answer.body

    return say


def keep(say: Say) -> Mapping[str, Any]:
    """Keeps something of every kind in every dialect, under names that others may guess; the ids it was told."""
    say("add_memory", path=f"{MARK}/plan", content=f"{MARK} leaves at nine")
    org = say("memory_org", action="create", name=f"{MARK} org")["organization"]["id"]
    project = say("memory_project", action="create", name=f"{MARK} project", orgId=org)["project"]["id"]
    session = say("memory_session", action="start", projectId=project, agentId=MARK)["session"]["id"]
    here = {"scopeType": "project", "scopeId": project}
    tool = say("memory_tool", action="add", **here, name=f"{MARK} tool", description=MARK)["tool"]["id"]
    rule = say("memory_guideline", action="add", **here, name=MARK, content=f"{MARK} first")["guideline"]["id"]
    say("memory_guideline", action="update", id=rule, content=f"{MARK} second")
    fact = say("memory_knowledge", action="add", scopeType="global", title=MARK, content=f"{MARK} is far")
    say("memory_tag", action="create", name=f"{MARK}-tag")
    say("memory_tag", action="attach", entryType="guideline", entryId=rule, tagName=f"{MARK}-tag")
    link = {"sourceType": "guideline", "sourceId": rule, "targetType": "tool", "targetId": tool}
    say("memory_relation", action="create", **link, relationType="applies_to")
    say("memory_file_lock", action="checkout", file_path=f"/{MARK}/a.py", agent_id=MARK)
    memory = say("save_memory", **CORE, content=f"{MARK} is warm in May", category="fact", tags=[MARK])["id"]
    say("update_memory", **CORE, id=memory, content=f"{MARK} is warm in June")
    entity = say("create_entity", **CORE, name=MARK, type="concept", tags=[MARK])["id"]
    ends = {"source_type": "memory", "source_id": memory, "target_type": "entity", "target_id": entity}
    say("create_link", **CORE, **ends, relationship="part_of")
    note = say("save_note", **CORE, title=MARK, content=f"{MARK} note", entity_id=entity)["id"]
    say("save_resource", **CORE, title=MARK, url=f"https://{MARK}.example/a")
    say("set_config", key=f"{MARK}.weight", value=MARK)
    say("search", **CORE, query=f"{MARK} asked")
    file = say("memory_remember", title=f"{MARK} decision", content=f"{MARK} it is", memoryType="context")["filePath"]
    stored = say("remember", content=f"{MARK} runs in src/{MARK}.py", session_id=MARK, kind="fact")["id"]
    say("upsert_entity", name=MARK, observations_json=f'["{MARK} was seen"]', memory_id=stored)
    say("add_relation", source=MARK, target=f"{MARK} 2", relation_type="near")
    entities = [{"name": name, "entityType": MARK, "observations": [f"{MARK} glows"]} for name in (MARK, f"{MARK} 2")]
    say("create_entities", entities=entities)
    say("memory", command="create", path=f"/memories/{MARK}", file_text=f"{MARK} is a harbour")
    say("create_relations", relations=[{"from": MARK, "to": f"{MARK} 2", "relationType": "near"}])
    return {
        "org": org,
        "project": project,
        "session": session,
        "tool": tool,
        "rule": rule,
        "memory": memory,
        "note": note,
        "fact": fact["knowledge"]["id"],
        "entity": entity,
        "file": file,
        "stored": stored,
    }


def looks(ids: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every reading call with data of the owner alone, by id, name, words, filter, count and place."""
    place = {"scopeType": "project", "scopeId": ids["project"]}
    entry = {"entryType": "guideline", "entryId": ids["rule"]}
    return [
        ("get_query_stats", {"group_by": "query"}),
        ("read_memory", {"path": f"{MARK}/plan"}),
        ("list_memories", {"prefix": MARK}),
        ("list_memories", {}),
        ("memory_org", {"action": "list"}),
        ("memory_project", {"action": "list", "orgId": ids["org"]}),
        ("memory_session", {"action": "list"}),
        ("memory_project", {"action": "get", "id": ids["project"]}),
        ("memory_project", {"action": "get", "name": f"{MARK} project"}),
        ("memory_session", {"action": "list", "projectId": ids["project"]}),
        *(
            (f"memory_{kind}", {"action": action, "id": ids[name]})
            for kind, name in (("tool", "tool"), ("guideline", "rule"), ("knowledge", "fact"))
            for action in ("get", "history")
        ),
        *(
            (f"memory_{kind}", {"action": "list", **more})
            for kind in ("tool", "guideline", "knowledge")
            for more in (place, {}, {"scopeType": "global"})
        ),
        ("memory_guideline", {"action": "get", "name": MARK, **place}),
        ("memory_tag", {"action": "list"}),
        ("memory_tag", {"action": "for_entry", **entry}),
        ("memory_relation", {"action": "list"}),
        ("memory_relation", {"action": "list", "sourceType": "guideline", "sourceId": ids["rule"]}),
        ("memory_file_lock", {"action": "status", "file_path": f"/{MARK}/a.py"}),
        ("memory_file_lock", {"action": "list"}),
        ("memory_query", {"action": "search", "search": MARK}),
        ("memory_query", {"action": "search", "search": MARK, "scope": {"type": "project", "id": ids["project"]}}),
        ("memory_query", {"action": "search", "tags": {"require": [f"{MARK}-tag"]}}),
        ("memory_query", {"action": "context", **place}),
        ("memory_conflict", {"action": "list"}),
        ("memory_query", {"action": "context", "scopeType": "global"}),
        ("memory_health", {}),
        ("memory_init", {"action": "status"}),
        ("memory_export", {"action": "export"}),
        ("memory_export", {"action": "export", **place, "includeVersions": True}),
        ("get_memories", {**CORE, "tags": [MARK]}),
        ("get_memories", CORE),
        ("get_memory_history", {"memory_id": ids["memory"]}),
        ("get_entities", CORE),
        ("get_links", CORE),
        ("get_entity_full", {**CORE, "id": ids["entity"]}),
        ("get_links", {**CORE, "source_id": ids["memory"]}),
        ("search", {**CORE, "query": MARK}),
        ("search_all", {"query": MARK}),
        ("get_notes", CORE),
        ("hybrid_search", {**CORE, "query": MARK}),
        ("get_notes", {**CORE, "entity_id": ids["entity"]}),
        ("semantic_search", {**CORE, "query": f"{MARK} is warm in June"}),
        ("get_resources", CORE),
        ("get_config", {"key": f"{MARK}.weight"}),
        ("get_config", {"prefix": MARK}),
        ("get_config", {}),
        ("memory_list_types", {}),
        ("memory_recall", {"query": MARK}),
        ("memory_recall", {"isAll": True}),
        ("memory_lint", {}),
        ("memory_sync", {}),
        ("search_memory", {"query": MARK, "session_id": MARK}),
        ("list_recent", {}),
        ("list_entities", {"memory_id": ids["stored"]}),
        ("get_entity", {"name": MARK}),
        ("get_context_graph", {}),
        ("get_context_graph", {"query": MARK}),
        ("diagnostics", {}),
        ("read_graph", {}),
        ("search_nodes", {"query": MARK}),
        ("open_nodes", {"names": [MARK]}),
        ("memory", {"command": "view", "path": "/memories"}),
        ("memory", {"command": "view", "path": f"/memories/{MARK}"}),
        ("recall", {"query": f"{MARK} leaves at nine"}),
        ("recall", {"after": "2020-01-01T00:00:00Z"}),
        ("recall", {"ids": [f"paths/{MARK}/plan", f"brain:core/{ids['memory']}"]}),
        ("recall", {"spaces": ["paths", "brain:core"], "query": MARK}),
    ]


def blows(ids: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every writing call against the data of the owner."""
    link = {
        "sourceType": "guideline",
        "sourceId": ids["rule"],
        "targetType": "tool",
        "targetId": ids["tool"],
        "relationType": "applies_to",
    }
    entry = {"entryType": "guideline", "entryId": ids["rule"], "tagName": f"{MARK}-tag"}
    return [
        ("replace_memory", {"path": f"{MARK}/plan", "content": "x"}),
        ("drop_memory", {"path": f"{MARK}/plan"}),
        ("memory_project", {"action": "update", "id": ids["project"], "name": "x"}),
        ("memory_session", {"action": "end", "id": ids["session"]}),
        ("memory_tool", {"action": "update", "id": ids["tool"], "description": "x"}),
        ("memory_tool", {"action": "deactivate", "id": ids["tool"]}),
        ("memory_guideline", {"action": "update", "id": ids["rule"], "content": "x"}),
        ("memory_guideline", {"action": "deactivate", "id": ids["rule"]}),
        ("memory_knowledge", {"action": "deactivate", "id": ids["fact"]}),
        ("memory_tag", {"action": "detach", **entry}),
        ("memory_relation", {"action": "delete", **link}),
        ("memory_file_lock", {"action": "checkin", "file_path": f"/{MARK}/a.py", "agent_id": MARK}),
        ("memory_file_lock", {"action": "force_unlock", "file_path": f"/{MARK}/a.py", "agent_id": "x"}),
        ("update_memory", {**CORE, "id": ids["memory"], "content": "x"}),
        ("delete_memory", {**CORE, "id": ids["memory"]}),
        ("supersede_memory", {**CORE, "old_id": ids["memory"], "new_content": "x"}),
        ("handle_correction", {**CORE, "wrong_memory_id": ids["memory"], "correct_content": "x"}),
        ("handle_correction", {**CORE, "wrong_content": MARK, "correct_content": "x"}),
        ("update_entity", {**CORE, "id": ids["entity"], "name": "x"}),
        ("delete_entity", {**CORE, "id": ids["entity"]}),
        ("update_note", {**CORE, "id": ids["note"], "content": "x"}),
        ("memory_forget", {"filePaths": [ids["file"]]}),
        ("memory_remember", {"title": "x", "content": "x", "memoryType": "context", "filePath": ids["file"]}),
        ("maintenance", {"action": "purge_session", "session_id": MARK, "confirm": True}),
        ("maintenance", {"action": "purge_all", "confirm": True}),
        ("add_observations", {"observations": [{"entityName": MARK, "contents": ["x"]}]}),
        ("delete_observations", {"deletions": [{"entityName": MARK, "observations": [f"{MARK} glows"]}]}),
        ("delete_relations", {"relations": [{"from": MARK, "to": f"{MARK} 2", "relationType": "near"}]}),
        ("delete_entities", {"entityNames": [MARK]}),
        ("memory", {"command": "str_replace", "path": f"/memories/{MARK}", "old_str": MARK, "new_str": "x"}),
        ("memory", {"command": "insert", "path": f"/memories/{MARK}", "insert_line": 0, "insert_text": "x"}),
        ("memory", {"command": "rename", "old_path": f"/memories/{MARK}", "new_path": "/memories/x"}),
        ("memory", {"command": "delete", "path": f"/memories/{MARK}"}),
        ("clear_memory", {}),
        ("memory_init", {"action": "reset", "confirm": True}),
        ("cleanup_query_log", {"older_than_days": 0}),
    ]


class Estate(NamedTuple):
    """A server on which somebody keeps something, and one on which nobody ever did; the same stranger on both."""

    full: House
    bare: House
    ids: Mapping[str, Any]
    stranger: tuple[str, str]
    owner: Path


@pytest.fixture(scope="module", params=[("main", "beta"), ("alpha", "main"), ("alpha", "beta")], ids="-".join)
def estate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """By whom things are kept, and who looks."""
    mine, theirs = request.param
    environment = {"CODE_MEMORY_ENABLE_GRAPH": "1"}
    base = tmp_path_factory.mktemp("estate")
    configs = [Config(data=base / name, environment=environment) for name in ("full", "bare")]
    with house(configs[0]) as full, house(configs[1]) as bare:
        owner, strangers = full.key("admin", mine), (full.key("admin", theirs), bare.key("admin", theirs))
        full.told()
        kept = keep(sayer(full, owner))
        home = full.data if mine == "main" else full.data / "tenants" / mine
        yield Estate(full, bare, kept, strangers, home)


def plain(body: bytes, running: House) -> str:
    """Return an answer without the differences between any two servers: times, new ids, and where they keep things."""
    text = body.decode()
    for data in (running.data.parent / "full", running.data.parent / "bare"):
        text = text.replace(str(data), "DATA")
    for differs in (r"\d{4}-\d\d-\d\d(?:T[\d:.]+Z)?", r"\b[a-z]+_[0-9a-z]{20,22}\b", r'"execution_time_ms":\d+'):
        text = re.sub(differs, "-", text)
    return text


def test_every_look_and_every_blow_of_the_table_is_tried(estate: Estate) -> None:
    tried = {tool for tool, _ in [*looks(estate.ids), *blows(estate.ids)]}
    reading = {call[0] for call in CALLS if needed(call).name == "read"}
    assert reading <= tried


def test_a_stranger_sees_what_there_is_where_nobody_keeps_anything(estate: Estate, catalogue: Catalogue) -> None:
    asked = looks(estate.ids)
    differ = []
    for tool, given in asked:
        seen = plain(estate.full.tool(tool, given, estate.stranger[0]).body, estate.full)
        bare = plain(estate.bare.tool(tool, given, estate.stranger[1]).body, estate.bare)
        if seen != bare or (MARK in seen and MARK not in json.dumps(given)):
            differ.append((tool, given, seen, bare))
    assert differ == []
    for uri in (f"memory://paths/{MARK}/plan", "memory://paths/"):
        there, here = (
            running.mcp("resources/read", {"uri": uri}, key).body
            for running, key in zip((estate.full, estate.bare), estate.stranger, strict=True)
        )
        assert there == here
    there, here = (
        running.mcp("resources/list", {}, key).body
        for running, key in zip((estate.full, estate.bare), estate.stranger, strict=True)
    )
    assert there == here
    catalogue("S07", injected="looks at another tenant", times=len(asked) + 3, outcome="as if there were nothing")


def test_a_stranger_changes_nothing_of_what_others_keep(estate: Estate, catalogue: Catalogue) -> None:
    before, file = rows(estate.owner / "quipu.db"), Path(estate.ids["file"])
    content = file.read_bytes()
    differ = []
    for tool, given in blows(estate.ids):
        seen = estate.full.tool(tool, given, estate.stranger[0])
        bare = estate.bare.tool(tool, given, estate.stranger[1])
        if (seen.status, plain(seen.body, estate.full)) != (bare.status, plain(bare.body, estate.bare)):
            differ.append((tool, given, seen, bare))
    assert differ == []
    assert rows(estate.owner / "quipu.db") == before
    assert (file.read_bytes(), MARK in file.name) == (content, True)
    catalogue("S07", injected="writes against another tenant", times=len(blows(estate.ids)), outcome="nothing changed")


def test_no_argument_chooses_a_tenant(estate: Estate, catalogue: Catalogue) -> None:
    ways = [{"x-tenant": "main"}, {"x-quipu-tenant": "alpha"}, {"tenant": "alpha"}, {"x-forwarded-user": "alpha"}]
    for headers in ways:
        for query in ("", "?tenant=main", "?tenant=alpha"):
            body = json.dumps({"path": f"{MARK}/plan", "tenant": "alpha"}).encode()
            given = {"content-type": "application/json", "accept": "application/json", **headers}
            answer = estate.full.ask("POST", f"/tools/read_memory{query}", estate.stranger[0], body, given)
            assert answer.status in {400, 404}, answer
            answer = estate.full.ask("POST", f"/tools/list_memories{query}", estate.stranger[0], b"{}", given)
            assert json.loads(answer.body)["total"] == 0
    catalogue("S07", injected="a tenant by argument", times=len(ways) * 6, outcome="the key's own")

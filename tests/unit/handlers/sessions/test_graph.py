"""The graph: types, unique facts, their source memories, and the setting that disables it."""

import unicodedata
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from tests.conftest import Call, Clock
from tests.unit.handlers.sessions.calls import TOOLS, Ask, opened

SHOWN = "2026-01-02 03:04:05"
UNSEEN = "holds a character that cannot be printed"
NO_TEXTS = "observations_json must be a JSON array of strings"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("upsert_entity", {"name": "Foo"}),
    ("add_relation", {"source": "Foo", "target": "Bar", "relation_type": "uses"}),
    ("get_entity", {"name": "Foo"}),
    ("get_context_graph", {}),
]


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_graph_tools_answer_disabled_with_the_setting_that_enables_them(
    unchanged: Call, name: str, arguments: dict[str, Any]
) -> None:
    reply = unchanged(name, **arguments)
    assert (reply.fault, msgspec.json.decode(reply.body)) == (
        None,
        {"status": "disabled", "setting": "CODE_MEMORY_ENABLE_GRAPH"},
    )
    assert "CODE_MEMORY_ENABLE_GRAPH=1" in TOOLS[name].description


def test_mentions_do_not_need_the_graph(ask: Ask) -> None:
    ask("remember", content="parse_config() fails", session_id="s")
    assert [entity["name"] for entity in ask("list_entities", memory_id=1)] == ["parse_config"]
    assert ask("diagnostics")["counts"] == {
        "memories": 1,
        "entities": 1,
        "graph_entities": 0,
        "graph_observations": 0,
        "graph_relations": 0,
    }


def test_upsert_adds_observations_newest_first(graph: Ask, clock: Clock) -> None:
    graph("remember", content="plain text", session_id="s")
    first = graph("upsert_entity", name=" Store ", entity_type="class", observations_json='["one writer"]')
    again = graph("upsert_entity", name="Store", observations_json='["WAL", "one writer"]', memory_id=1)
    graph("upsert_entity", name="Store", observations_json='"just one"')
    assert first == again == {"status": "ok", "entity_id": 1}
    assert graph("get_entity", name="Store") == {
        "id": 1,
        "name": "Store",
        "entity_type": "class",
        "created_at": SHOWN,
        "observations": ["just one", "one writer", "WAL"],
        "memory_ids": [None, 1, 1],
        "relations": [],
    }


def test_equal_observations_of_a_memory_are_kept_once(graph: Ask) -> None:
    for texts in ('["WAL", "WAL"]', '["WAL", " "]', "null"):
        assert graph("upsert_entity", name="Store", observations_json=texts)["status"] == "ok"
    assert graph("get_entity", name="Store")["observations"] == ["WAL"]


@pytest.mark.slow
def test_an_entity_of_many_observations_takes_more_of_them_at_once(graph: Ask) -> None:
    texts = [[f"note {group} {number}" for number in range(1000)] for group in range(12)]
    for group in (*texts, texts[0]):
        assert (
            graph("upsert_entity", name="Store", observations_json=msgspec.json.encode(group).decode())["status"]
            == "ok"
        )
    assert graph("diagnostics")["counts"]["graph_observations"] == 12_000


def test_observations_of_many_memories_do_not_hide_older_ones(graph: Ask) -> None:
    graph("upsert_entity", name="Store", observations_json='["one writer", "WAL"]')
    for number in range(1, 52):
        graph("remember", content=f"plain text {number}", session_id="s")
        graph("upsert_entity", name="Store", observations_json='["is slow"]', memory_id=number)
    found = graph("get_entity", name="Store")
    assert (found["observations"], found["memory_ids"]) == (["is slow", "WAL", "one writer"], [51, None, None])


@pytest.mark.parametrize(
    ("types", "kept"),
    [
        (["class", "entity"], "class"),
        (["entity", "class"], "class"),
        (["class", "module"], "module"),
        (["", ""], "entity"),
    ],
)
def test_type_entity_never_replaces_another(graph: Ask, types: list[str], kept: str) -> None:
    for kind in types:
        graph("upsert_entity", name="Foo", entity_type=kind)
    graph("upsert_entity", name="Foo")
    graph("add_relation", source="Foo", target="foo", relation_type="uses")
    graph("remember", content="class Foo:\n  pass", session_id="s")
    wanted = "class" if kept == "entity" else kept
    assert graph("get_entity", name="Foo")["entity_type"] == wanted
    assert graph("get_entity", name="foo")["entity_type"] == "entity"


def test_relations_are_unique_and_listed_at_both_ends(graph: Ask, clock: Clock) -> None:
    graph("remember", content="plain text", session_id="s")
    answer = [
        graph("add_relation", source="Foo", target="Bar", relation_type="depends_on", **more)
        for more in ({}, {"memory_id": 1}, {})
    ]
    assert answer == [{"status": "ok", "relation_id": 1}] * 3
    assert graph("add_relation", source="Bar", target="Foo", relation_type="depends_on")["relation_id"] != 1
    relations = [
        {"type": "depends_on", "source": "Bar", "target": "Foo"},
        {"type": "depends_on", "source": "Foo", "target": "Bar"},
    ]
    assert graph("get_entity", name="Foo")["relations"] == graph("get_entity", name="Bar")["relations"] == relations
    assert graph("get_entity", name="Unknown") == {"status": "not_found"}


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_an_entity_is_one_in_both_normal_forms(graph: Ask, form: Literal["NFC", "NFD"]) -> None:
    name, other = (unicodedata.normalize(kind, "gerät_öffnen") for kind in (form, "NFD" if form == "NFC" else "NFC"))
    stored = graph("upsert_entity", name=name, observations_json='["opens"]')
    assert graph("upsert_entity", name=other, observations_json='["closes"]') == stored
    graph("add_relation", source=other, target=name, relation_type="calls")
    graph("remember", content=f"{other}() fails", session_id="s", summary="fails")
    for spelled in (name, other):
        assert graph("get_entity", name=spelled) == {
            "id": 1,
            "name": name,
            "entity_type": "function_like",
            "created_at": graph("get_context_graph")["entities"][0]["created_at"],
            "observations": ["fails", "closes", "opens"],
            "memory_ids": [1, None, None],
            "relations": [{"type": "calls", "source": name, "target": name}],
        }
        assert [node["score"] for node in graph("get_context_graph", query=spelled)["entities"]] == [0.0]


def test_remember_adds_mentioned_entities(graph: Ask) -> None:
    graph("remember", content="parse_config() in src/app.py\nmore", session_id="s", summary="Parses the settings")
    found = graph("get_entity", name="parse_config")
    assert (found["entity_type"], found["observations"], found["memory_ids"]) == (
        "function_like",
        ["Parses the settings"],
        [1],
    )
    assert graph("get_entity", name="src/app.py")["observations"] == ["Parses the settings"]


def test_context_graph_shows_the_newest_entities_and_their_relations(graph: Ask, clock: Clock) -> None:
    for name in ("a", "b", "c"):
        graph("upsert_entity", name=name)
    graph("add_relation", source="a", target="b", relation_type="uses")
    assert graph("get_context_graph", limit=2) == {
        "entities": [
            {"id": 3, "name": "c", "entity_type": "entity", "created_at": SHOWN},
            {"id": 2, "name": "b", "entity_type": "entity", "created_at": SHOWN},
        ],
        "relations": [{"type": "uses", "source": "a", "target": "b"}],
    }
    assert graph("get_context_graph", limit=0) == {"entities": [], "relations": []}
    assert [node["name"] for node in graph("get_context_graph")["entities"]] == ["c", "b", "a"]


def test_entities_are_found_by_observations(graph: Ask) -> None:
    graph("upsert_entity", name="Harbour", observations_json='["The automobile goes to the garage"]')
    graph("upsert_entity", name="Kitchen", observations_json='["Noodles with tomatoes and basil"]')
    graph("upsert_entity", name="kitchen", observations_json='["Dishes"]')
    found = graph("get_context_graph", query="car repair")["entities"]
    assert found[0]["name"] == "Harbour"
    assert [node["score"] for node in found] == sorted(node["score"] for node in found)
    named = graph("get_context_graph", query="KITCHEN", limit=2)["entities"]
    assert [(node["name"], node["score"]) for node in named] == [("kitchen", 0.0), ("Kitchen", 0.0)]


def test_search_works_without_vectors(tmp_path: Path) -> None:
    with opened(tmp_path, ENABLE_GRAPH="1", ENABLE_VEC="0") as (_, ask):
        ask("upsert_entity", name="ParseConfig", observations_json='["reads settings"]')
        for query in ("seCon", "settings", "parseconfig"):
            assert [node["score"] for node in ask("get_context_graph", query=query)["entities"]] == [0.0], query
        assert ask("get_context_graph", query="nothing alike") == {"entities": [], "relations": []}


def test_entities_found_by_words_alone_come_best_first(tmp_path: Path) -> None:
    with opened(tmp_path, ENABLE_GRAPH="1", ENABLE_VEC="0") as (_, ask):
        ask("upsert_entity", name="Loader", observations_json='["reads the settings from YAML files"]')
        ask("upsert_entity", name="Printer", observations_json='["prints the settings"]')
        found = ask("get_context_graph", query="settings YAML")["entities"]
    assert [node["name"] for node in found] == ["Loader", "Printer"]


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("upsert_entity", {"name": " "}, "name is required"),
        ("upsert_entity", {"name": "a\0"}, f"name {UNSEEN}"),
        ("upsert_entity", {"name": "a", "entity_type": "\t\x07"}, f"entity_type {UNSEEN}"),
        ("upsert_entity", {"name": "a", "memory_id": 7}, "memory_id 7 does not exist"),
        ("upsert_entity", {"name": "a", "observations_json": "[1]"}, NO_TEXTS),
        ("upsert_entity", {"name": "a", "observations_json": "{}"}, NO_TEXTS),
        ("add_relation", {"source": "", "target": "b", "relation_type": "c"}, "source is required"),
        ("add_relation", {"source": "a", "target": "\n", "relation_type": "c"}, "target is required"),
        ("add_relation", {"source": "a", "target": "b", "relation_type": ""}, "relation_type is required"),
        (
            "add_relation",
            {"source": "a", "target": "b", "relation_type": "c", "memory_id": 2**62},
            f"memory_id {2**62} does not exist",
        ),
        ("get_entity", {"name": ""}, "name is required"),
    ],
)
def test_empty_names_are_refused(graph: Ask, name: str, arguments: dict[str, Any], text: str) -> None:
    assert graph(name, **arguments) == {"status": "error", "error": text, "tool": name}
    assert graph("diagnostics")["counts"]["graph_entities"] == 0


@pytest.mark.parametrize("text", ["[", "[1", "'a'", '["\\ud800"]', "[" * 5000])
def test_invalid_observations_are_refused_with_the_reason(graph: Ask, text: str) -> None:
    answer = graph("upsert_entity", name="a", observations_json=text)["error"]
    assert answer.startswith("observations_json is not valid JSON: ")


def test_secrets_are_kept_out_of_the_graph_too(graph: Ask) -> None:
    token = "ghp_" + "a1B2" * 9
    calls = [
        ("upsert_entity", {"name": "a", "observations_json": f'["x", "{token}"]'}, "observations_json"),
        ("upsert_entity", {"name": "a", "entity_type": token}, "entity_type"),
        ("add_relation", {"source": "a", "target": token, "relation_type": "uses"}, "target"),
    ]
    for name, arguments, field in calls:
        assert graph(name, **arguments) == {"status": "skipped", "reason": f"sensitive: {field}"}
    assert graph("get_context_graph") == {"entities": [], "relations": []}

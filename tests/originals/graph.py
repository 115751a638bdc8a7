"""The reference memory server beside the dialect `graph`; `make originals` installs it from its registry."""

from typing import Any

from handlers import graph
from tests.originals.originals import Original, Rule, each


def entity(name: str, *observations: str, kind: str = "person") -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": [*observations]}


def relation(source: str, target: str, kind: str = "knows") -> dict[str, str]:
    return {"from": source, "to": target, "relationType": kind}


ADA, BOB = entity("Ada", "likes tea", "lives in Köln"), entity("Bob", "")
ODD = entity("", '"quoted" \\ \u2028 \u007f \u0001 \b\f\n\r\t 🙂', "two\nlines", kind="")

CALLS = (
    *each("read_graph", {}, {"colour": "red"}),
    *each(
        "create_entities",
        {"entities": []},
        {"entities": [ADA, BOB]},
        {"entities": [{**ADA, "entityType": "dog", "colour": "red"}, entity("Carl")]},
        {"entities": [ODD]},
        {"entities": [entity("ada", "another name")]},
        {"entities": [entity("Twin", "first"), entity("Twin", "second")]},
        {"entities": [entity("Echo", "a", "a", "b")]},
        {},
        {"entities": "x"},
        {"entities": None},
        {"entities": [1]},
        {"entities": [{"name": "x"}]},
        {"entities": [{"name": 1, "entityType": None, "observations": "x"}]},
        {"entities": [{**ADA, "observations": [1]}]},
    ),
    *each("delete_entities", {"entityNames": ["Twin", "Twin", "Echo"]}),
    *each(
        "create_relations",
        {"relations": []},
        {"relations": [relation("Ada", "Bob"), relation("Ada", "Nobody"), relation("Some", "One")]},
        {"relations": [{**relation("Ada", "Bob"), "colour": "red"}, relation("Bob", "Ada")]},
        {"relations": [relation("Ada", "Ada", ""), relation("Ada", "Ada", "")]},
        {},
        {"relations": [{"from": "Ada"}]},
        {"relations": {}},
    ),
    *each("delete_relations", {"relations": [relation("Ada", "Ada", "")]}),
    *each(
        "add_observations",
        {"observations": []},
        {"observations": [{"entityName": "Ada", "contents": ["likes tea", "plays chess"]}]},
        {
            "observations": [
                {"entityName": "Bob", "contents": ["one"]},
                {"entityName": "Ada", "contents": []},
                {"entityName": "Bob", "contents": ["one", "two"]},
            ]
        },
        {"observations": [{"entityName": "Ada", "contents": ["lost"]}, {"entityName": "Zoe", "contents": ["x"]}]},
        {"observations": [{"entityName": "Carl", "contents": ["twice", "twice"]}]},
        {},
        {"observations": [{"entityName": "Ada"}]},
    ),
    *each("delete_observations", {"deletions": [{"entityName": "Carl", "observations": ["twice"]}]}),
    *each("read_graph", {}),
    *each(
        "search_nodes",
        {"query": ""},
        {"query": "TEA"},
        {"query": "KÖLN"},
        {"query": "person"},
        {"query": "knows"},
        {"query": "tea chess"},
        {"query": "two\nlines"},
        {"query": "\n"},
        {"query": "ada\nperson"},
        {"query": " "},
        {"query": "%"},
        {},
        {"query": None},
    ),
    *each("open_nodes", {"names": []}, {"names": ["Bob", "Ada", "Bob", "Zoe"]}, {"names": [""]}, {}, {"names": "Ada"}),
    *each(
        "delete_observations",
        {"deletions": []},
        {"deletions": [{"entityName": "Ada", "observations": ["likes tea", "no such"]}]},
        {"deletions": [{"entityName": "Zoe", "observations": ["x"]}]},
        {},
        {"deletions": [{"entityName": "Ada"}]},
    ),
    *each(
        "delete_relations",
        {"relations": []},
        {"relations": [relation("Ada", "Bob"), relation("No", "One")]},
        {},
        {"relations": [{}]},
    ),
    *each("read_graph", {}),
    *each("delete_entities", {"entityNames": []}, {"entityNames": ["Ada", "Zoe", "Some"]}, {}, {"entityNames": [1]}),
    *each("read_graph", {}),
    *each("no_such_tool", {}),
)

TWICE = "create_entities, create_relations, add_observations: behaviour: equal entries in one call"
RULES = (
    Rule(TWICE, calls='*"Twin"* || *"Echo"* || *"Ada", "to": "Ada"* || *"twice"*'),
    Rule("error: wrong arguments", at="body", original="MCP error -32602: Input*", ours="MCP error -32602: Input*"),
    Rule("error: unknown tool", calls="no_such_tool*"),
    Rule("behaviour: nothing contains the query", calls='*"knows"* || *"tea chess"* || *"%"* || *"ada*person"*'),
)

ORIGINAL = Original(
    graph.DIALECT,
    "https://github.com/modelcontextprotocol/servers",
    "@modelcontextprotocol/server-memory 2026.8.31",
    {"MEMORY_FILE_PATH": "{data}/memory.jsonl"},
    {},
    r"(?!)",
    CALLS,
    RULES,
)

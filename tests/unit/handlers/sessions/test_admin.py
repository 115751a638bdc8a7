"""Deletions are complete and counted; the reports show the settings in force."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.core.config import MODEL
from kernel.engines.sqlite.connection import Connection
from kernel.operations import consistency
from kernel.server.app import DIALECTS, Kernel
from kernel.store import audit, history
from tests.conftest import Call, Clock, everything
from tests.unit.handlers.sessions.calls import Ask, opened

INCOMPLETE = "invalid action or missing parameter: purge_session needs session_id"
COUNTS = ("memories", "entities", "graph_entities", "graph_observations", "graph_relations")


def counts(ask: Ask) -> list[int]:
    found = ask("diagnostics")["counts"]
    assert tuple(found) == COUNTS
    return list(found.values())


def pages(kernel: Kernel) -> int:
    db = Connection(kernel.config.file, kernel.store.context, readonly=True)
    try:
        return db.pragma("page_count")
    finally:
        db.close()


def fill(ask: Ask, clock: Clock) -> None:
    """Two sessions a day apart, a graph they share, and an observation without a memory."""
    ask("remember", content="parse_config() fails", session_id="a")
    clock.move(days=1)
    ask("remember", content="parse_config() calls read_file()", session_id="b")
    ask("add_relation", source="parse_config", target="read_file", relation_type="calls", memory_id=1)
    ask("add_relation", source="parse_config", target="read_file", relation_type="calls", memory_id=2)
    ask("add_relation", source="parse_config", target="Settings", relation_type="fills", memory_id=1)
    ask("upsert_entity", name="Deploy", observations_json='["on Fridays never"]')
    ask("upsert_entity", name="Mixed", observations_json='["answer in a"]', memory_id=1)
    ask("upsert_entity", name="Mixed", observations_json='["answer in b"]', memory_id=2)
    assert counts(ask) == [2, 3, 5, 6, 2]


@pytest.mark.slow
def test_purge_session_deletes_what_it_alone_supports(graph: Ask, clock: Clock) -> None:
    fill(graph, clock)
    assert graph("maintenance", action="purge_session", session_id="a", confirm=True) == {"status": "ok", "deleted": 1}
    assert counts(graph) == [1, 2, 4, 4, 1]
    assert graph("get_entity", name="Settings") == {"status": "not_found"}
    assert graph("get_entity", name="Mixed")["observations"] == ["answer in b"]
    assert graph("get_entity", name="parse_config")["relations"] == [
        {"type": "calls", "source": "parse_config", "target": "read_file"}
    ]
    assert graph("search_memory", query="parse_config", session_id="a") == []
    assert [found["id"] for found in graph("search_memory", query="parse_config", session_id="b")] == [2]
    assert graph("list_entities", memory_id=1) == []
    graph("maintenance", action="purge_session", session_id="b", confirm=True)
    assert counts(graph) == [0, 0, 1, 1, 0]
    assert [node["name"] for node in graph("get_context_graph", query="parse_config")["entities"]] == ["Deploy"]


@pytest.mark.slow
def test_stated_rows_outlive_memories(graph: Ask) -> None:
    graph("remember", content="plain text", session_id="a")
    graph("upsert_entity", name="Kept")
    graph("upsert_entity", name="Kept", observations_json='["seen"]', memory_id=1)
    graph("upsert_entity", name="Bare", memory_id=1)
    graph("add_relation", source="Kept", target="Bare", relation_type="uses")
    graph("add_relation", source="Kept", target="Bare", relation_type="uses", memory_id=1)
    graph("maintenance", action="purge_session", session_id="a", confirm=True)
    assert counts(graph) == [0, 0, 2, 0, 1]
    assert graph("get_entity", name="Kept")["observations"] == []


def test_purge_all_empties_the_graph_index(tmp_path: Path, clock: Clock) -> None:
    with opened(tmp_path, ENABLE_GRAPH="1") as (kernel, ask):
        fill(ask, clock)
        ask("maintenance", action="purge_all", confirm=True)
        assert everything(kernel)["doc"] == []


@pytest.mark.slow
def test_purge_all_empties_the_graph(graph: Ask, clock: Clock) -> None:
    fill(graph, clock)
    assert graph("maintenance", action="purge_all", confirm=True) == {"status": "ok", "deleted": 2}
    assert counts(graph) == [0, 0, 0, 0, 0]
    assert graph("maintenance", action="purge_all", confirm=True) == {"status": "ok", "deleted": 0}
    assert graph("get_context_graph", query="parse_config") == {"entities": [], "relations": []}
    assert graph("remember", content="next", session_id="a")["id"] == 3


@pytest.mark.parametrize(("days", "left"), [(0, 0), (1, 2), (9, 4), (100_000, 5)])
def test_prune_counts_days_in_utc(
    ask: Ask, clock: Clock, monkeypatch: pytest.MonkeyPatch, days: int, left: int
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    for number, hours in enumerate((0, 24 * 8, 24, 12, 12)):
        clock.move(hours=hours)
        ask("remember", content=f"note {number}", session_id="s")
    clock.move(minutes=1)
    answer = ask("maintenance", action="prune_older_than", older_than_days=days, confirm=True)
    assert (answer, counts(ask)[0]) == ({"status": "ok", "deleted": 5 - left}, left)


def test_purged_memories_stay_in_the_history_and_leave_the_index(tmp_path: Path, clock: Clock) -> None:
    with opened(tmp_path, ENABLE_GRAPH="1") as (kernel, ask):
        fill(ask, clock)
        ask("maintenance", action="purge_session", session_id="a", confirm=True)
        events = kernel.store.read_sync(lambda tx: history.read(tx, "sessions", "1"))
        assert [(event.operation, event.before, event.after) for event in events] == [
            ("remembered", None, "parse_config() fails"),
            ("purge_session", "parse_config() fails", None),
        ]
    assert consistency.check(kernel.config.file, kernel.store.context, DIALECTS) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"action": "purge_all"}, "confirm=true required for destructive actions"),
        ({"action": "purge_all", "confirm": False}, "confirm=true required for destructive actions"),
        ({"action": "purge_session", "session_id": "s"}, "confirm=true required for destructive actions"),
        ({"action": "purge_session", "confirm": True}, INCOMPLETE),
        ({"action": "purge_session", "confirm": True, "session_id": " "}, INCOMPLETE),
        (
            {"action": "prune_older_than", "confirm": True},
            "invalid action or missing parameter: prune_older_than needs older_than_days",
        ),
        (
            {"action": "prune_older_than", "confirm": True, "older_than_days": -1},
            "Invalid arguments: expected `integer` >= 0 - at `older_than_days`",
        ),
        (
            {"action": "drop", "confirm": True},
            "Invalid arguments: invalid enum value 'drop', "
            "choose from prune_older_than, purge_all, purge_session, vacuum - at `action`",
        ),
        (
            {"action": "purge_all", "confirm": True, "session_id": "s"},
            "session_id goes with purge_session only, and purge_all would ignore it",
        ),
        (
            {"action": "prune_older_than", "confirm": True, "older_than_days": 0, "session_id": "t"},
            "session_id goes with purge_session only, and prune_older_than would ignore it",
        ),
        (
            {"action": "purge_session", "confirm": True, "session_id": "s", "older_than_days": 0},
            "older_than_days goes with prune_older_than only, and purge_session would ignore it",
        ),
        (
            {"action": "purge_all", "confirm": True, "older_than_days": 30},
            "older_than_days goes with prune_older_than only, and purge_all would ignore it",
        ),
        (
            {"action": "vacuum", "session_id": "s"},
            "session_id goes with purge_session only, and vacuum would ignore it",
        ),
        (
            {"action": "purge_all", "confirm": "yes"},
            "Invalid arguments: expected `boolean | null`, got `string` - at `confirm`;"
            " expects boolean (Must be true for everything but vacuum)",
        ),
    ],
)
def test_unconfirmed_or_incomplete_calls_delete_nothing(
    ask: Ask, unchanged: Call, arguments: dict[str, Any], text: str
) -> None:
    ask("remember", content="keep me", session_id="s")
    reply = unchanged("maintenance", **arguments)
    assert (reply.fault, msgspec.json.decode(reply.body)) == (
        "invalid",
        {"status": "error", "error": text, "tool": "maintenance"},
    )


@pytest.mark.slow
def test_vacuum_shrinks_the_file_without_confirmation(kernel: Kernel, ask: Ask) -> None:
    for number in range(20):
        ask("remember", content=f"{number} " + "x" * 50_000, session_id="s")
    ask("maintenance", action="purge_all", confirm=True)
    while kernel.store.write_sync(lambda tx: audit.expire_undo(tx, "9")):
        pass
    large = pages(kernel)
    assert ask("maintenance", action="vacuum") == {"status": "ok", "action": "vacuum"}
    assert pages(kernel) < large * 0.8  # the history keeps deleted rows
    ask("remember", content="works on", session_id="s")
    assert [found["content"] for found in ask("search_memory", query="works", session_id="s")] == ["works on"]


def test_diagnostics_returns_the_keys_of_the_contract(kernel: Kernel, ask: Ask) -> None:
    found = ask("diagnostics")
    tables = found.pop("tables")
    assert {"sessions_memory", "sessions_entity", "doc", "doc_fts"} <= set(tables)
    assert found == {
        "cwd": str(Path.cwd()),
        "db_path": str(kernel.config.file.resolve()),
        "model": found["model"],
        "model_cache_dir": str(MODEL),
        "flags": {"vec": True, "fts": True, "graph": False, "session_scope": True},
        "defaults": {
            "top_k": 12,
            "top_p": 0.6,
            "recency_weight": 0.2,
            "priority_weight": 0.15,
            "fts_bonus": 0.1,
            "oversample_k": 4,
        },
        "summary": {
            "enabled": False,
            "model": None,
            "ctx": 2048,
            "threads": 4,
            "max_tokens": 200,
            "temperature": 0.2,
            "auto_install": False,
        },
        "counts": dict.fromkeys(COUNTS, 0),
    }
    assert found["model"].startswith("static-multilingual-256-int8@")


def test_health_returns_the_settings_in_force(tmp_path: Path) -> None:
    settings = {
        "ENABLE_VEC": "0",
        "TOP_K": "5",
        "TOP_P": "1",
        "WORKSPACE": "/home/ada/space",
        "SUMMARY_MODEL": "/no/such.gguf",
    }
    with opened(tmp_path, **settings) as (kernel, ask):
        found = ask("health")
        model = found.pop("model")
        assert found == {
            "status": "ok",
            "db_path": str(kernel.config.file.resolve()),
            "embedding_dim": 256,
            "model_cache_dir": str(MODEL),
            "tree_sitter": False,
            "default_top_k": 5,
            "default_top_p": 1.0,
            "recency_weight": 0.2,
            "priority_weight": 0.15,
            "fts_bonus": 0.1,
            "oversample_k": 4,
            "flags": {"vec": False, "fts": True, "graph": False, "session_scope": True},
            "summary": {
                "enabled": False,
                "model": "/no/such.gguf",
                "ctx": 2048,
                "threads": 4,
                "max_tokens": 200,
                "temperature": 0.2,
                "auto_install": False,
            },
            "log_level": "INFO",
            "log_file": None,
            "workspace": "/home/ada/space",
        }
        assert model == ask("diagnostics")["model"]

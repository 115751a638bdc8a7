"""Words find memories and entities of the databases asked for, best first; hits count as accessed."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Clock
from tests.support.handlers_brain_memories import NOW, row
from tests.unit.handlers.brain.conftest import CallOk

Refused = Callable[..., tuple[str | None, str]]


@pytest.fixture
def stored(call_ok: CallOk, clock: Clock) -> None:
    """Three memories and an entity in core, one memory in dnd."""
    call_ok("save_memory", db="core", content="The database of Falcon is PostgreSQL", category="fact", tags=["storage"])
    call_ok(
        "save_memory", db="core", content="Falcon moved to a database in Dublin, a bigger database", category="decision"
    )
    call_ok("save_memory", db="core", content="Tea is steeped at 70% heat", category="preference", importance=5)
    call_ok(
        "create_entity", db="core", name="Falcon", type="project", description="The payment service", tags=["money"]
    )
    call_ok("save_memory", db="dnd", content="The falcon guards a database of spells", category="fact")


def ids(found: dict[str, Any]) -> dict[str, list[str]]:
    return {kind: [row["id"] for row in rows] for kind, rows in found.items()}


def test_search_answers_with_whole_rows_and_their_rank_best_first(call_ok: CallOk, stored: None) -> None:
    found = call_ok("search", db="core", query="Falcon database")
    ranks = [row.pop("rank") for row in found["memories"]]

    assert found["memories"] == [
        row("mem_2", "Falcon moved to a database in Dublin, a bigger database", "decision"),
        row("mem_1", "The database of Falcon is PostgreSQL", tags='["storage"]'),
    ]
    assert ranks == sorted(ranks)
    assert all(rank < 0 for rank in ranks)
    assert [(entity["id"], entity["name"]) for entity in found["entities"]] == [("ent_4", "Falcon")]
    assert found["entities"][0]["rank"] < 0


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("postgresql", {"memories": ["mem_1"], "entities": []}),
        ("storage", {"memories": ["mem_1"], "entities": []}),
        ("decision", {"memories": ["mem_2"], "entities": []}),
        ("money", {"memories": [], "entities": ["ent_4"]}),
        ("project", {"memories": [], "entities": ["ent_4"]}),
        ("payments", {"memories": [], "entities": ["ent_4"]}),
        ("ostgre", {"memories": ["mem_1"], "entities": []}),
        ("Postgre*", {"memories": ["mem_1"], "entities": []}),
        ('"of falcon is"', {"memories": ["mem_1", "mem_2"], "entities": ["ent_4"]}),
        ("ANDROID", {"memories": [], "entities": []}),
        ("70%", {"memories": ["mem_3"], "entities": []}),
        ("eep%d", {"memories": [], "entities": []}),
        ("st__ped", {"memories": [], "entities": []}),
        ("_", {"memories": [], "entities": []}),
        ("*", {"memories": [], "entities": []}),
        ("spells", {"memories": [], "entities": []}),
        ('NEAR("a" OR', {"memories": [], "entities": []}),
        ("'; DROP TABLE brain_memory; --", {"memories": [], "entities": []}),
    ],
)
def test_words_tags_categories_and_parts_of_words_are_found(
    call_ok: CallOk, stored: None, query: str, found: dict[str, list[str]]
) -> None:
    assert ids(call_ok("search", db="core", query=query)) == found


@pytest.mark.parametrize("letter", ["_", "%", "\\", "a", '"', "\u5b57", "\U0001f4a1"])
@pytest.mark.parametrize("tool", ["search", "search_all"])
def test_the_longest_query_is_answered(call_ok: CallOk, stored: None, tool: str, letter: str) -> None:
    database = {"db": "core"} if tool == "search" else {}
    nothing: dict[str, Any] = {"memories": [], "entities": []}

    found = call_ok(tool, query=letter * 10_000, **database)

    assert found == (nothing if database else dict.fromkeys(["core", "therapy", "dnd", "hlg"], nothing))


def test_only_requested_types_are_returned(call_ok: CallOk, stored: None) -> None:
    assert list(call_ok("search", db="core", query="falcon", types=["entity"])) == ["entities"]
    assert list(call_ok("search", db="core", query="falcon", types=["memory", "memory"])) == ["memories"]
    assert list(call_ok("search", db="core", query="falcon", types=[])) == ["memories", "entities"]


@pytest.mark.slow
def test_limit_is_filled_per_type_despite_inactive_rows(call_ok: CallOk) -> None:
    for number in range(30):
        key = call_ok("save_memory", db="core", content=f"alpha beta {number}", category="fact")["id"]
        call_ok("create_entity", db="core", name=f"alpha {number}", type="concept")
        if number % 2:
            call_ok("update_memory", db="core", id=key, status="archived")
    for limit in (1, 7, 15):
        found = call_ok("search", db="core", query="alpha", limit=limit)
        assert [len(found["memories"]), len(found["entities"])] == [limit, limit]
        assert len(call_ok("search", db="core", query="alph", types=["memory"], limit=limit)["memories"]) == limit


def test_only_returned_memories_count_as_accessed(
    call_ok: CallOk, settled: Callable[[], None], stored: None, clock: Clock
) -> None:
    clock.move(days=60)
    call_ok("search", db="core", query="postgresql")
    call_ok("search_all", query="spells")
    settled()
    touched = {"access_count": 1, "last_accessed_at": clock.now, "decay_score": pytest.approx(0.35)}

    held = {
        memory["id"]: memory for memory in [*call_ok("get_memories", db="core"), *call_ok("get_memories", db="dnd")]
    }

    assert held["mem_1"] == row("mem_1", "The database of Falcon is PostgreSQL", tags='["storage"]') | touched
    assert held["mem_5"] == row("mem_5", "The falcon guards a database of spells") | touched
    assert held["mem_3"] == row("mem_3", "Tea is steeped at 70% heat", "preference", importance=5)
    assert held["mem_3"]["created_at"] == NOW


def test_search_all_has_a_key_for_every_database_asked_for(call_ok: CallOk, stored: None) -> None:
    nothing = {"memories": [], "entities": []}
    core = {"memories": ["mem_2", "mem_1"], "entities": ["ent_4"]}
    dnd = {"memories": ["mem_5"], "entities": []}

    everywhere = call_ok("search_all", query="falcon database")
    some = call_ok("search_all", query="falcon database", dbs=["dnd", "hlg", "dnd"])

    assert {db: ids(found) for db, found in everywhere.items()} == {
        "core": core,
        "therapy": nothing,
        "dnd": dnd,
        "hlg": nothing,
    }
    assert list(everywhere) == ["core", "therapy", "dnd", "hlg"]
    assert {db: ids(found) for db, found in some.items()} == {"dnd": dnd, "hlg": nothing}


def test_the_limit_of_search_all_is_ten_of_each_type_in_each_database(call_ok: CallOk) -> None:
    for number in range(12):
        call_ok("save_memory", db="core", content=f"alpha {number}", category="fact")
        call_ok("save_memory", db="dnd", content=f"alpha {number}", category="fact")

    found = call_ok("search_all", query="alpha")
    fewer = call_ok("search_all", query="alpha", limit=2)

    assert [len(found[db]["memories"]) for db in ("core", "dnd")] == [10, 10]
    assert [len(fewer[db]["memories"]) for db in ("core", "dnd")] == [2, 2]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("search", {"db": "core"}, "missing required field `query`"),
        ("search", {"query": "x"}, "missing required field `db`"),
        ("search", {"db": "nowhere", "query": "x"}, "db is one of core, therapy, dnd, hlg"),
        ("search", {"db": "core", "query": ""}, "at `query`"),
        ("search", {"db": "core", "query": " \n"}, "at `query`"),
        ("search", {"db": "core", "query": "a\0b"}, "at `query`"),
        ("search", {"db": "core", "query": "x" * 10_001}, "at `query`"),
        ("search", {"db": "core", "query": ["x"]}, "at `query`"),
        ("search", {"db": "core", "query": "x", "types": ["note"]}, "at `types[0]`"),
        ("search", {"db": "core", "query": "x", "types": "memory"}, "at `types`"),
        ("search", {"db": "core", "query": "x", "limit": 0}, "at `limit`"),
        ("search", {"db": "core", "query": "x", "limit": 1001}, "at `limit`"),
        ("search", {"db": "core", "query": "x", "limit": 10**40}, "at `limit`"),
        ("search", {"db": "core", "query": "x", "limit": 1.5}, "at `limit`"),
        ("search", {"db": "core", "query": "x", "more": 1}, "contains unknown field `more`"),
        ("search_all", {}, "missing required field `query`"),
        ("search_all", {"query": "x", "dbs": ["core", "nowhere"]}, "dbs is one of core, therapy, dnd, hlg"),
        ("search_all", {"query": "x", "dbs": "core"}, "at `dbs`"),
        ("search_all", {"query": "x", "limit": -1}, "at `limit`"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    refused: Refused, stored: None, name: str, arguments: dict[str, Any], message: str
) -> None:
    code, text = refused(name, **arguments)

    assert code == "invalid"
    assert text.startswith("Error: Invalid arguments: ")
    assert message in text

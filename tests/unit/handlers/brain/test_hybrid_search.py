"""Meaning, words, recency and importance together find the relevant rows, and show the share of each."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.core.config import Config
from kernel.server.app import open_kernel
from tests.conftest import Clock
from tests.support.handlers_brain_memories import row
from tests.unit.handlers.brain.conftest import CallOk, read
from tests.unit.handlers.brain.distractors import rivals
from tests.unit.handlers.brain.examples import example, shape

Refused = Callable[..., tuple[str | None, str]]
PLAIN = {"vector": 0.4, "fts": 0.3, "recency": 0.2, "importance": 0.1}
EVERY = {"vector": 1, "fts": 1, "recency": 1, "importance": 1}
QUESTIONS = 200


@pytest.fixture
def stored(call_ok: CallOk, clock: Clock) -> None:
    """A memory, an entity and a note on databases, and a memory that is about something else."""
    call_ok("save_memory", db="core", content="The database of Falcon is PostgreSQL", category="fact", importance=4)
    call_ok("create_entity", db="core", name="Falcon", type="project", description="Keeps data in a database")
    call_ok("save_note", db="core", title="Backups", content="Long text", summary="How the database is copied")
    call_ok("save_memory", db="core", content="Tea is steeped at 70 degrees", category="preference", importance=1)


def test_a_result_has_its_row_its_text_its_score_and_the_signals_behind_it(call_ok: CallOk, stored: None) -> None:
    answer = call_ok("hybrid_search", db="core", query="the database of Falcon is PostgreSQL", types=["memory"])
    took = answer["meta"].pop("execution_time_ms")

    assert answer["results"][0] == {
        "id": "mem_1",
        "type": "memory",
        "content": "The database of Falcon is PostgreSQL",
        "score": 0.98,
        "signals": {"vector": 0.4, "fts": 0.3, "recency": 0.2, "importance": 0.08},
        "data": row("mem_1", "The database of Falcon is PostgreSQL", importance=4),
    }
    assert answer["meta"] == {"total_candidates": 2, "returned": 2, "weights": PLAIN}
    assert isinstance(took, int)


@pytest.mark.parametrize("name", ["hybrid_search", "semantic_search"])
def test_the_answer_has_the_shape_the_contract_shows(call_ok: CallOk, stored: None, name: str) -> None:
    assert shape(call_ok(name, db="core", query="database")) == shape(example(name))


def test_every_type_is_returned_with_its_indexed_text(call_ok: CallOk, stored: None) -> None:
    found = call_ok("hybrid_search", db="core", query="database")["results"]

    assert {result["id"]: (result["type"], result["content"]) for result in found} == {
        "mem_1": ("memory", "The database of Falcon is PostgreSQL"),
        "ent_2": ("entity", "Falcon. Keeps data in a database"),
        "note_3": ("note", "Backups. How the database is copied"),
        "mem_4": ("memory", "Tea is steeped at 70 degrees"),
    }
    assert found[-1]["id"] == "mem_4"
    assert {result["id"]: result["signals"]["importance"] for result in found} == {
        "mem_1": 0.08,
        "ent_2": 0.06,
        "note_3": 0.06,
        "mem_4": 0.02,
    }


@pytest.mark.parametrize("types", [["memory"], ["entity"], ["note"], ["note", "entity"], []])
@pytest.mark.parametrize("name", ["hybrid_search", "semantic_search"])
def test_only_requested_types_are_returned(call_ok: CallOk, stored: None, name: str, types: list[str]) -> None:
    found = call_ok(name, db="core", query="database", types=types)["results"]

    assert {result["type"] for result in found} == set(types or ["memory", "entity", "note"])


def test_search_is_limited_to_one_database(call_ok: CallOk, stored: None) -> None:
    for name in ("hybrid_search", "semantic_search"):
        assert call_ok(name, db="dnd", query="database")["results"] == []


def test_every_score_is_the_sum_of_its_signals_and_the_best_comes_first(call_ok: CallOk, stored: None) -> None:
    found = call_ok("hybrid_search", db="core", query="which database", weights={"recency": 0.5})["results"]
    scores = [result["score"] for result in found]

    assert scores == sorted(scores, reverse=True)
    assert [pytest.approx(sum(result["signals"].values()), abs=2e-4) for result in found] == scores


def test_weights_are_those_given_then_those_configured_then_the_defaults(call_ok: CallOk, stored: None) -> None:
    def used(**more: Any) -> dict[str, float]:
        return call_ok("hybrid_search", db="dnd", query="x", **more)["meta"]["weights"]

    assert used() == PLAIN
    call_ok("set_config", key="retrieval.vector_weight", value="0.7")
    assert used() == PLAIN | {"vector": 0.7}
    assert used(weights={"vector": 0, "importance": 1}) == PLAIN | {"vector": 0, "importance": 1}
    assert used(weights={}) == used(weights=None) == PLAIN | {"vector": 0.7}


def test_weight_0_removes_the_signal(call_ok: CallOk, stored: None) -> None:
    call_ok("set_config", key="retrieval.importance_weight", value="0.9")

    found = call_ok("hybrid_search", db="core", query="database", weights={"importance": 0, "fts": 0})["results"]

    assert {(result["signals"]["importance"], result["signals"]["fts"]) for result in found} == {(0, 0)}


def test_recency_decays_with_days_and_rises_with_access(
    call_ok: CallOk, settled: Callable[[], None], stored: None, clock: Clock
) -> None:
    def recency(query: str = "database of Falcon PostgreSQL") -> list[float]:
        answer = call_ok("hybrid_search", db="core", query=query, types=["memory"], limit=1, weights=EVERY)
        settled()
        return [result["signals"]["recency"] for result in answer["results"]]

    assert recency() == [1.0]
    clock.move(days=30)
    assert recency() == [0.5]
    assert recency() == [0.6]
    assert recency("tea") == [0.5]
    clock.move(days=60)
    assert recency() == [pytest.approx(0.7 / 4)]
    assert [
        result["signals"]["recency"]
        for result in call_ok("hybrid_search", db="core", query="backups", types=["note"], weights=EVERY)["results"]
    ] == [0.125]


def test_only_returned_memories_count_as_accessed(call_ok: CallOk, settled: Callable[[], None], stored: None) -> None:
    for name in ("hybrid_search", "semantic_search"):
        call_ok(name, db="core", query="which database is it", limit=1, types=["memory"])
    settled()

    assert [(memory["id"], memory["access_count"]) for memory in call_ok("get_memories", db="core")] == [
        ("mem_1", 2),
        ("mem_4", 0),
    ]


def test_semantic_search_returns_distances_nearest_first(call_ok: CallOk, stored: None) -> None:
    answer = call_ok("semantic_search", db="core", query="The database of Falcon is PostgreSQL")
    distances = [result["distance"] for result in answer["results"]]

    assert answer["results"][0] == {
        "id": "mem_1",
        "type": "memory",
        "distance": pytest.approx(0.0, abs=1e-3),
        "data": row("mem_1", "The database of Falcon is PostgreSQL", importance=4),
    }
    assert distances == sorted(distances)
    assert all(0 <= distance <= 2 and distance == round(distance, 4) for distance in distances)
    assert answer["meta"]["returned"] == 4


@pytest.mark.slow
def test_limit_is_filled_despite_nearer_inactive_memories(call_ok: CallOk) -> None:
    texts = [{"content": f"The garden has {number} apple trees", "category": "fact"} for number in range(60)]
    keys = call_ok("bulk_save_memories", db="core", memories=texts)["ids"]
    for key in keys[:40]:
        call_ok("supersede_memory", db="core", old_id=key, new_content=f"Something else entirely: {key}")
    for name in ("hybrid_search", "semantic_search"):
        for limit in (1, 20, 60):
            found = call_ok(name, db="core", query="apple trees in the garden", limit=limit)["results"]
            assert len(found) == limit
            assert {result["data"]["status"] for result in found} == {"active"}
    nearest = call_ok("semantic_search", db="core", query="apple trees in the garden", limit=20)["results"]
    assert {result["id"] for result in nearest} == set(keys[40:])


def test_without_model_words_work_and_semantic_search_is_refused(tmp_path: Path, caller: Any) -> None:
    kernel = open_kernel(Config(data=tmp_path / "data", model=None))
    call = caller(kernel.dispatch)
    call("save_memory", db="core", content="The database is PostgreSQL", category="fact")

    found = read(call("hybrid_search", db="core", query="database"))["results"]
    refused = call("semantic_search", db="core", query="database")
    kernel.store.close()

    assert [result["signals"] for result in found] == [{"vector": 0.0, "fts": 0.3, "recency": 0.2, "importance": 0.06}]
    assert (refused.fault, read(refused)) == (
        "disabled",
        "Error generating embedding: no model is configured, or it cannot be read",
    )


@pytest.mark.slow
@pytest.mark.parametrize(("days", "what"), [(0, "less important"), (30, "less important and a half-life older")])
def test_relevant_memory_beats_more_important_distractors(
    call_ok: CallOk, clock: Clock, capsys: pytest.CaptureFixture[str], days: int, what: str
) -> None:
    """Of the 2,000 memories of `rivals`, the 200 that are asked about have importance 1, all others importance 5. In
    the second round the others are saved 30 days later, so that recency speaks for them too.
    """
    asked = random.Random(5).sample(rivals(), QUESTIONS)
    others = [one for one in rivals() if one not in asked]
    for importance, some in ((1, asked), (5, others)):
        clock.move(days=days if importance == 5 else 0)
        items = [{"content": one.content, "category": "fact", "importance": importance} for one in some]
        for start in range(0, len(items), 100):
            call_ok("bulk_save_memories", db="core", memories=items[start : start + 100])

    first = [call_ok("hybrid_search", db="core", query=one.question, limit=1)["results"][0] for one in asked]

    share = sum(found["content"] == one.content for found, one in zip(first, asked, strict=True)) / len(asked)
    with capsys.disabled():
        print(f"\nrelevant first among 2,000 memories, most of them rivals, where it is {what}: {share:.3f}")
    assert share >= 0.95


@pytest.mark.parametrize("name", ["hybrid_search", "semantic_search"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"db": "core"}, "missing required field `query`"),
        ({"query": "x"}, "missing required field `db`"),
        ({"db": "nowhere", "query": "x"}, "db is one of core, therapy, dnd, hlg"),
        ({"db": "core", "query": ""}, "at `query`"),
        ({"db": "core", "query": "a\0b"}, "at `query`"),
        ({"db": "core", "query": 1}, "at `query`"),
        ({"db": "core", "query": "x", "types": ["resource"]}, "at `types[0]`"),
        ({"db": "core", "query": "x", "limit": 0}, "at `limit`"),
        ({"db": "core", "query": "x", "limit": 10**40}, "at `limit`"),
        ({"db": "core", "query": "x", "more": 1}, "contains unknown field `more`"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    refused: Refused, stored: None, name: str, arguments: dict[str, Any], message: str
) -> None:
    code, text = refused(name, **arguments)

    assert code == "invalid"
    assert text.startswith("Error: Invalid arguments: ")
    assert message in text


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"vector": 1.1}, "at `weights.vector`"),
        ({"fts": -0.1}, "at `weights.fts`"),
        ({"recency": "1"}, "at `weights.recency`"),
        ({"importance": 10**400}, "at `weights.importance`"),
        ({"meaning": 1}, "contains unknown field `meaning` - at `weights`"),
        ([0.4, 0.3], "at `weights`"),
    ],
)
def test_bad_weights_are_refused_by_name(refused: Refused, stored: None, weights: Any, message: str) -> None:
    code, text = refused("hybrid_search", db="core", query="x", weights=weights)

    assert code == "invalid"
    assert message in text


@pytest.mark.parametrize(
    "query", ["\ud7ff\U0010ffff", "'; DROP TABLE doc; --", '"*" OR NEAR(', "%_\\", "日本語", " \t\n."]
)
@pytest.mark.parametrize("name", ["hybrid_search", "semantic_search", "search"])
def test_hostile_text_is_treated_as_plain_text(call_ok: CallOk, stored: None, name: str, query: str) -> None:
    call_ok(name, db="core", query=query)

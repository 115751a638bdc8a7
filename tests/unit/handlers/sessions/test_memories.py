"""Memories: stored, searched within their session, ranked; secrets and duplicates are skipped."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.app import Kernel
from kernel.errors import Fault
from kernel.store import history
from kernel.store.history import Event
from kernel.tools import IndexSource
from tests.conftest import TESTER, Call, Clock
from tests.marks import sampled
from tests.unit.handlers.sessions.calls import Ask, opened

NOW = "2026-01-02T03:04:05.678Z"
SHOWN = "2026-01-02 03:04:05"
NOTE = "Decision: keep embeddings CPU-only. Use sqlite-vec for local semantic search."
EXAMPLE = {
    "content": NOTE,
    "session_id": "opencode:2026-01-04",
    "kind": "decision",
    "summary": "Chose CPU-only embeddings + sqlite-vec for local semantic memory.",
    "tags": "architecture,sqlite,embeddings",
    "priority": 1,
    "metadata_json": '{"repo":"mcp-code-vector-memory-sql","ticket":"MEM-12"}',
}
SKIPPED = {"status": "skipped"}


def error(text: str, tool: str = "remember") -> dict[str, str]:
    return {"status": "error", "error": text, "tool": tool}


def ids(found: list[dict[str, Any]]) -> list[int]:
    return [memory["id"] for memory in found]


def test_the_example_of_the_contract_is_stored_and_found(ask: Ask, clock: Clock) -> None:
    assert ask("remember", **EXAMPLE) == {
        "id": 1,
        "summary": EXAMPLE["summary"],
        "session_id": "opencode:2026-01-04",
        "kind": "decision",
        "tags": "architecture,sqlite,embeddings",
        "priority": 1,
    }
    question = {"query": "sqlite-vec embedding dimension mismatch", "session_id": "opencode:2026-01-04"}
    (found,) = ask("search_memory", **question, limit=8, top_p=0.7)
    assert 0 < found.pop("score") < 1
    assert found == {
        "id": 1,
        "session_id": "opencode:2026-01-04",
        "kind": "decision",
        "content": NOTE,
        "summary": EXAMPLE["summary"],
        "tags": "architecture,sqlite,embeddings",
        "priority": 1,
        "metadata": {"repo": "mcp-code-vector-memory-sql", "ticket": "MEM-12"},
        "created_at": SHOWN,
        "fts_hit": True,
    }


def test_omitted_fields_are_generated_and_returned_as_stored(ask: Ask, clock: Clock) -> None:
    answer = ask("remember", content="  Fixed the API\nmore", session_id=" s ", summary=" ", tags="", priority=9)
    assert answer == {
        "id": 1,
        "summary": "Fixed the API",
        "session_id": "s",
        "kind": None,
        "tags": "fix,api",
        "priority": 5,
    }
    assert ask("list_recent") == [
        {
            "id": 1,
            "session_id": "s",
            "kind": None,
            "content": "  Fixed the API\nmore",
            "summary": "Fixed the API",
            "tags": "fix,api",
            "priority": 5,
            "metadata": {},
            "created_at": SHOWN,
        }
    ]


@pytest.mark.parametrize(("given", "kept"), [(0, 1), (-(2**70), 1), (3, 3), (5, 5), (10, 5), (2**70, 5), (None, 3)])
def test_priority_is_clamped(ask: Ask, given: int | None, kept: int) -> None:
    assert ask("remember", content="x", session_id="s", priority=given)["priority"] == kept


@pytest.mark.parametrize("place", ["content", "kind", "summary", "tags", "metadata_json"])
def test_a_secret_in_any_field_is_skipped_without_a_trace(call: Call, unchanged: Call, place: str) -> None:
    token = "ghp_" + "a1B2" * 9
    arguments = {
        "content": "fine",
        "session_id": "s",
        place: f'{{"a": "{token}"}}' if place == "metadata_json" else token,
    }
    reply = unchanged("remember", **arguments)
    assert (reply.fault, msgspec.json.decode(reply.body)) == (None, SKIPPED)


@pytest.mark.parametrize("content", ["api_key=abcd1234abcd1234", "secret=abcdefghijkl", "password=123456"])
def test_the_samples_of_the_original_are_skipped(ask: Ask, content: str) -> None:
    assert ask("remember", content=content, session_id="s") == SKIPPED
    assert ask("remember", content="all good here", session_id="s")["id"] == 1


def test_duplicates_are_skipped_for_five_minutes_per_session(
    ask: Ask, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert ask("remember", content="x", session_id="s")["id"] == 1
    assert ask("remember", content="x", session_id="s", summary="other") == SKIPPED
    assert ask("remember", content="x", session_id="t")["id"] == 2
    assert ask("remember", content="x ", session_id="s")["id"] == 3
    clock.move(seconds=299.999)
    assert ask("remember", content="x", session_id="s") == SKIPPED
    clock.move(milliseconds=1)
    assert ask("remember", content="x", session_id="s")["id"] == 4


def test_concurrent_duplicates_are_stored_once(kernel: Kernel, runner: asyncio.Runner) -> None:
    bound = kernel.dispatch.tools["remember"]
    raw = msgspec.json.encode({"content": "x", "session_id": "s"})

    async def remember_concurrently() -> list[Any]:
        return await asyncio.gather(*(kernel.dispatch.call(bound, raw, TESTER) for _ in range(50)))

    answers = [msgspec.json.decode(reply.body) for reply in runner.run(remember_concurrently())]
    assert sorted(answer.get("status", "") for answer in answers) == [""] + ["skipped"] * 49


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"content": "x"}, "session_id is required"),
        ({"content": "x", "session_id": " "}, "session_id is required"),
        ({"content": "x", "session_id": None}, "session_id is required"),
        ({"content": "x", "session_id": "a\0b"}, "session_id holds a character that cannot be printed"),
        ({"content": " \n", "session_id": "s"}, "content is required"),
        ({"content": "x", "session_id": "s", "metadata_json": "[1]"}, "metadata_json must be a JSON object"),
        ({"content": "x", "session_id": "s", "metadata_json": "3"}, "metadata_json must be a JSON object"),
        (
            {"content": "x", "session_id": "s", "metadata_json": '{"a":' * 40 + "1" + "}" * 40},
            "metadata_json is nested too deeply",
        ),
    ],
)
def test_invalid_memories_are_refused(unchanged: Call, arguments: dict[str, Any], text: str) -> None:
    reply = unchanged("remember", **arguments)
    assert (reply.fault, msgspec.json.decode(reply.body)) == ("invalid", error(text))


@pytest.mark.parametrize("text", ["{", "{'a': 1}", '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud800"}', "{" * 5000, "x"])
def test_invalid_metadata_is_refused_with_the_reason(unchanged: Call, text: str) -> None:
    reply = unchanged("remember", content="x", session_id="s", metadata_json=text)
    assert msgspec.json.decode(reply.body)["error"].startswith("metadata_json is not valid JSON: ")


def test_the_configured_session_is_the_default(tmp_path: Path) -> None:
    with opened(tmp_path, SESSION_ID="home") as (_, ask):
        assert ask("remember", content="tea")["session_id"] == "home"
        assert ask("remember", content="tea", session_id="away")["session_id"] == "away"
        assert ids(ask("search_memory", query="tea")) == [1]


@pytest.mark.slow
def test_a_small_session_finds_its_memory_among_many_others(kernel: Kernel, ask: Ask) -> None:
    bound = kernel.dispatch.tools["remember"].tool

    def crowd(tx: Any) -> None:
        for number in range(3000):
            text = f"How to brew green tea number {number}, with water at seventy degrees"
            bound.handler(tx, bound.request(content=text, session_id=f"other-{number % 7}"))

    kernel.store.write_sync(crowd)
    ask("remember", content="The garage opens at nine", session_id="mine")
    for query in ("green tea water degrees", "", "garage", "when can I bring the car", "number 17 !?"):
        (found,) = ask("search_memory", query=query, session_id="mine")
        assert (found["content"], found["session_id"]) == ("The garage opens at nine", "mine")
    assert ask("search_memory", query="garage", session_id="unknown") == []
    assert {found["session_id"] for found in ask("search_memory", query="garage", session_id="other-3")} == {"other-3"}


QUERIES = [
    "",
    " ",
    "sqlite-vec",
    '"',
    "'",
    "a:b",
    "tags:bench",
    "title:x",
    "*",
    "(",
    ")",
    "AND",
    "OR NOT",
    "NEAR(a b)",
    "c++",
    "don't",
    "user@example.com",
    "a.b/c",
    "https://x.y/z?q=1",
    "-",
    "^",
    "\\",
    "%",
    "\0",
    "日本語",
    "😀",
    "?" * 500,
    "{}",
    "'; DROP TABLE doc; --",
    "[" * 2000,
    "\u202e",
    "null",
]


@pytest.mark.parametrize("query", sampled(QUERIES, quick=10), ids=lambda query: ascii(query)[:20])
def test_any_query_returns_results(ask: Ask, query: str) -> None:
    ask("remember", content='sqlite-vec and "quotes": a.b/c don\'t c++', session_id="s")
    ask("remember", content="日本語のメモ", session_id="s")
    assert len(ask("search_memory", query=query, session_id="s", top_p=1)) == 2


def test_words_with_punctuation_match(ask: Ask) -> None:
    ask("remember", content="the sqlite-vec embedding", session_id="s", tags="bench", metadata_json='{"k": "MEM-12"}')
    for query in ("sqlite-vec", '"embedding"', "tags:bench", "MEM-12", "bench"):
        (found,) = ask("search_memory", query=query, session_id="s")
        assert found["fts_hit"], query


def test_an_empty_query_returns_the_newest_share_of_the_session(ask: Ask, clock: Clock) -> None:
    for number in range(5):
        ask("remember", content=f"note {number}", session_id="s")
        clock.move(minutes=1)
    found = ask("search_memory", query="", session_id="s")
    assert [(memory["id"], memory["score"], memory["fts_hit"]) for memory in found] == [
        (5, 1.3, False),
        (4, 1.35, False),
        (3, 1.4, False),
    ]
    assert ids(ask("search_memory", query="", session_id="s", top_p=1)) == [5, 4, 3, 2, 1]
    assert ids(ask("search_memory", query="", session_id="s", top_p=0.4, limit=4)) == [4 + 1, 4]


@pytest.mark.parametrize(("limit", "count"), [(0, 1), (-5, 1), (1, 1), (2, 2), (1000, 3)])
def test_a_limit_is_at_least_one(ask: Ask, limit: int, count: int) -> None:
    for number in range(3):
        ask("remember", content=f"tea {number}", session_id="s")
    assert len(ask("search_memory", query="tea", session_id="s", limit=limit, top_p=1)) == count


def test_content_equal_to_the_query_comes_first(ask: Ask, clock: Clock) -> None:
    text = "keep the embedding dimension at 256"
    ask("remember", content=text, session_id="s", priority=5)
    clock.move(days=90)
    for number in range(20):
        ask("remember", content=f"{text} {text} {number}", session_id="s", priority=1)
    found = ask("search_memory", query=text, session_id="s", limit=3)
    assert found[0]["content"] == text
    assert [memory["score"] for memory in found] == sorted(memory["score"] for memory in found)


def test_content_equal_to_the_query_is_found_without_index_hits(tmp_path: Path) -> None:
    with opened(tmp_path, ENABLE_VEC="0", ENABLE_FTS="0") as (_, ask):
        for content in ("green tea", "black tea"):
            ask("remember", content=content, session_id="s", priority=1)
        (found,) = ask("search_memory", query="green tea", session_id="s")
        assert (found["id"], found["score"], found["fts_hit"]) == (1, 0.0, False)
        assert ids(ask("search_memory", query="tea", session_id="s", top_p=1)) == [2, 1]


def test_scores_of_word_hits_match_the_contract(tmp_path: Path, clock: Clock) -> None:
    with opened(tmp_path, ENABLE_VEC="0") as (_, ask):
        ask("remember", content="green tea", session_id="a", priority=1)
        ask("remember", content="green tea", session_id="b", priority=5)
        (one,) = ask("search_memory", query="tea", session_id="a")
        (other,) = ask("search_memory", query="tea", session_id="b")
        ask("remember", content="nothing like it", session_id="c")
        (fallback,) = ask("search_memory", query="tea", session_id="c")
    assert [(found["score"], found["fts_hit"]) for found in (one, other, fallback)] == [
        (0.9, True),
        (1.5, True),
        (1.3, False),
    ]


def test_semantic_hits_have_fts_hit_false(tmp_path: Path) -> None:
    with opened(tmp_path, ENABLE_FTS="0") as (_, ask):
        ask("remember", content="My automobile goes to the garage in May", session_id="s")
        ask("remember", content="Noodles with basil for dinner", session_id="s")
        first, _ = ask("search_memory", query="automobile garage", session_id="s", top_p=1)
    assert (first["id"], first["fts_hit"]) == (1, False)


def test_weights_and_defaults_are_configurable(tmp_path: Path, clock: Clock) -> None:
    weights = {"PRIORITY_WEIGHT": "1", "RECENCY_WEIGHT": "0", "FTS_BONUS": "0.5", "TOP_K": "2", "TOP_P": "1"}
    with opened(tmp_path, ENABLE_VEC="0", **weights) as (_, ask):
        for number in range(4):
            ask("remember", content=f"tea {number}", session_id="s", priority=2)
            clock.move(days=1)
        assert [found["score"] for found in ask("search_memory", query="tea", session_id="s")] == [1.5, 1.5]


def test_without_scoping_a_search_covers_every_session(tmp_path: Path) -> None:
    with opened(tmp_path, ENABLE_SESSION_SCOPE="0") as (_, ask):
        ask("remember", content="green tea", session_id="a")
        ask("remember", content="green tea leaves", session_id="b")
        assert ids(ask("search_memory", query="green tea", session_id="b", top_p=1)) == [1, 2]
        assert ids(ask("search_memory", query="", session_id="b", top_p=1)) == [2, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "wanted"), [({}, 20), ({"limit": 0}, 0), ({"limit": 3}, 3), ({"limit": 1000}, 25)])
def test_the_newest_memories_of_all_sessions_are_listed(
    ask: Ask, clock: Clock, limit: dict[str, int], wanted: int
) -> None:
    for number in range(25):
        ask("remember", content=f"note {number}", session_id=f"s{number % 3}")
    assert ids(ask("list_recent", **limit)) == list(range(25, 0, -1))[:wanted]


def test_entities_of_a_memory_are_listed_in_order(ask: Ask) -> None:
    ask("remember", content="parse_config() in src/app.py raised ValueError", session_id="s")
    assert ask("list_entities", memory_id=1) == [
        {"entity_type": "file_path", "name": "src/app.py", "source": "regex", "path": "src/app.py"},
        {"entity_type": "error", "name": "ValueError", "source": "regex", "path": None},
        {"entity_type": "function_like", "name": "parse_config", "source": "regex", "path": None},
    ]
    assert ask("list_entities", memory_id=99) == []


def test_a_memory_has_a_history_and_matches_the_index(kernel: Kernel, ask: Ask, clock: Clock) -> None:
    ask("remember", content="green tea", session_id="s", tags="drinks")
    events = kernel.store.read_sync(lambda tx: history.read(tx, "sessions", "1"))
    assert events == [Event(1, "remembered", None, "green tea", None, "sessions", "remember", "tester", NOW)]
    sources = kernel.dispatch.tools["remember"].dialect.sources
    assert sources is not None
    assert kernel.store.read_sync(sources) == [IndexSource("sessions", "1", "s", "green tea", "drinks")]


def test_memories_survive_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as (_, ask):
        ask("remember", content="green tea", session_id="s")
    with opened(tmp_path) as (_, ask):
        assert ids(ask("search_memory", query="tea", session_id="s")) == [1]
        assert ask("remember", content="black tea", session_id="s")["id"] == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("TOP_K", "0"), ("TOP_P", "2"), ("ENABLE_GRAPH", "maybe"), ("FTS_BONUS", "x"), ("SUMMARY_CTX", "-1")],
)
def test_an_invalid_setting_stops_the_start_by_name(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(Fault, match=f"CODE_MEMORY_{name} is "), opened(tmp_path, **{name: value}):
        pass

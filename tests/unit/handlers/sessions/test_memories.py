"""Memories are stored; secrets and duplicates are skipped."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.calls.dialect import Concept, IndexSource
from kernel.core.errors import Fault
from kernel.server.app import Kernel
from kernel.store import history
from kernel.store.history import Event
from tests.conftest import TESTER, Call, Clock
from tests.unit.handlers.sessions.calls import Ask, ids, opened

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


def skipped(reason: str) -> dict[str, str]:
    return {"status": "skipped", "reason": reason}


def error(text: str, tool: str = "remember") -> dict[str, str]:
    return {"status": "error", "error": text, "tool": tool}


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


@pytest.mark.parametrize("none", [{"tags": ""}, {"tags": " , "}, {"tags": " ", "metadata_json": "null"}], ids=str)
def test_omitted_fields_are_generated_and_returned_as_stored(ask: Ask, clock: Clock, none: dict[str, str]) -> None:
    answer = ask("remember", content="  Fixed the API\nmore", session_id=" s ", summary=" ", priority=9, **none)
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
    assert (reply.fault, msgspec.json.decode(reply.body)) == (None, skipped(f"sensitive: {place}"))


@pytest.mark.parametrize("content", ["api_key=abcd1234abcd1234", "secret=abcdefghijkl", "password=123456"])
def test_the_samples_of_the_original_are_skipped(ask: Ask, content: str) -> None:
    assert ask("remember", content=content, session_id="s") == skipped("sensitive: content")
    assert ask("remember", content="all good here", session_id="s")["id"] == 1


@pytest.mark.parametrize(
    "content",
    [
        "mutation Login($email: String!, $password: String!)",
        'password: "{{ vault_pw }}"',
        "password: !vault |",
        "AUTH_SECRET=tu-secreto-super-largo-aqui",
    ],
)
def test_types_templates_tags_and_placeholders_are_stored(ask: Ask, content: str) -> None:
    stored = ask("remember", content=content, session_id="s")
    assert (stored.get("reason"), stored.get("summary")) == (None, content)


def test_duplicates_are_skipped_for_five_minutes_per_session(
    ask: Ask, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert ask("remember", content="x", session_id="s")["id"] == 1
    assert ask("remember", content="x", session_id="s", summary="other") == skipped("duplicate of 1")
    assert ask("remember", content="x", session_id="t")["id"] == 2
    assert ask("remember", content="x ", session_id="s")["id"] == 3
    clock.move(seconds=299.999)
    assert ask("remember", content="x", session_id="s") == skipped("duplicate of 1")
    clock.move(milliseconds=1)
    assert ask("remember", content="x", session_id="s")["id"] == 4
    assert ask("remember", content="x", session_id="s") == skipped("duplicate of 4")


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
            "metadata_json is nested more than 32 levels deep",
        ),
        (
            {"content": "x", "session_id": "s", "metadata_json": f'{{"a":[{",".join(["1e300"] * 10_000)}]}}'},
            "metadata_json has more digits than a request may have",
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


def test_a_memory_has_a_history_and_matches_the_index(kernel: Kernel, ask: Ask, clock: Clock) -> None:
    ask("remember", content="green tea", session_id="s", tags="drinks")
    events = kernel.store.read_sync(lambda tx: history.read(tx, "sessions", "1"))
    assert events == [Event(1, "remembered", None, "green tea", None, "sessions", "remember", "tester", NOW)]
    sources = kernel.dispatch.tools["remember"].dialect.memories.sources
    assert sources is not None
    assert kernel.store.read_sync(lambda tx: list(sources(tx))) == [
        IndexSource("sessions", "1", "s", "green tea", "drinks", Concept(body="green tea", tags=["drinks"]))
    ]


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

"""A memory whose validity has ended is no answer: searches leave it out, recall counts it and shows it on request."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from kernel.calls.schema import input_schema
from kernel.server.app import Kernel
from tests.conftest import Call, Clock

Ask = Callable[..., Any]
PLACES = {"db": "core", "session_id": "s"}
ENDED, RENEWED = "The stork permit is number 12", "The stork permit is number 47"


@pytest.fixture
def ask(call: Call) -> Ask:
    """The answer of a call that succeeds."""

    def answer(name: str, /, **arguments: Any) -> Any:
        reply = call(name, **arguments)
        assert reply.fault is None, reply.body
        return msgspec.json.decode(reply.structured or reply.body)

    return answer


def texts(answer: Any) -> list[str]:
    return [memory["text"] for memory in answer["memories"]]


def save(ask: Ask, content: str, **more: Any) -> str:
    return str(ask("save_memory", db="core", content=content, category="fact", **more)["id"])


def add(ask: Ask, title: str, content: str, **more: Any) -> None:
    ask("memory_knowledge", action="add", scopeType="global", title=title, content=content, **more)


@pytest.mark.parametrize("query", ["stork permit", ""])
@pytest.mark.parametrize("filters", [{}, {"after": "2020-01-01"}])
def test_recall_leaves_an_expired_memory_out_and_counts_it(ask: Ask, query: str, filters: dict[str, Any]) -> None:
    save(ask, ENDED, valid_until="2025-12-31")
    save(ask, RENEWED)

    answer = ask("recall", query=query, **filters)

    assert texts(answer) == [RENEWED]
    assert answer["message"] == "1 expired memory is left out; expired=true shows it."
    shown = ask("recall", query=query, expired=True, **filters)
    assert {memory["text"]: memory.get("expired") for memory in shown["memories"]} == {ENDED: True, RENEWED: None}
    assert "message" not in shown


def test_recall_leaves_expired_knowledge_of_scopes_out(ask: Ask) -> None:
    add(ask, "old", ENDED, validUntil="2020-01-01")
    add(ask, "new", RENEWED, validUntil="2030-01-01")

    assert texts(ask("recall", query="stork permit")) == [f"new {RENEWED}"]


def test_validity_is_judged_at_the_time_asked(ask: Ask, clock: Clock) -> None:
    save(ask, ENDED, valid_until="2026-01-05T00:00:00Z")
    add(ask, "pass", "The stork pass is blue", validUntil="2026-01-05T00:00:00Z")
    then = clock.move(seconds=1)
    clock.move(days=9)

    assert texts(ask("recall", query="stork")) == []
    assert len(texts(ask("recall", query="stork", as_of=then))) == 2
    assert len(texts(ask("recall", as_of=then))) == 2
    assert "2 expired memories are left out" in ask("recall", query="stork")["message"]


def test_an_expired_memory_is_read_by_its_id(ask: Ask) -> None:
    key = save(ask, ENDED, valid_until="2025-12-31")

    [memory] = ask("recall", ids=[f"brain:core/{key}"])["memories"]
    assert (memory["text"], memory["expired"]) == (ENDED, True)


def test_a_memory_read_by_its_id_as_of_a_time_before_its_end_is_not_told_as_expired(ask: Ask, clock: Clock) -> None:
    key = save(ask, ENDED, valid_until="2026-01-05")
    then = clock.move(days=1)
    clock.move(days=9)

    [memory] = ask("recall", ids=[f"brain:core/{key}"], as_of=then)["memories"]
    assert "expired" not in memory


def test_many_expired_memories_do_not_crowd_out_a_valid_one(ask: Ask) -> None:
    memories = [
        {"content": f"{ENDED}, page {number}", "category": "fact", "valid_until": "2025-01-01"} for number in range(60)
    ]
    ask("bulk_save_memories", db="core", memories=memories)
    save(ask, "A permit for a stork was asked for")

    assert texts(ask("recall", query="stork permit number", limit=3, floor="none")) == [
        "A permit for a stork was asked for"
    ]
    for tool in ("search", "hybrid_search", "semantic_search"):
        answer = ask(tool, db="core", query="stork permit", limit=2)
        rows = answer.get("memories") or [result["data"] for result in answer["results"]]
        assert [row["content"] for row in rows] == ["A permit for a stork was asked for"], tool
    assert [row["content"] for row in ask("search", db="core", query="page")["memories"]] == []


def test_a_date_counts_to_its_end(ask: Ask, clock: Clock) -> None:
    save(ask, ENDED, valid_until=clock.now[:10])

    assert texts(ask("recall", query="stork permit")) == [ENDED]
    clock.move(days=1)
    assert texts(ask("recall", query="stork permit")) == []


def test_an_update_sets_and_clears_the_end(ask: Ask) -> None:
    key = save(ask, ENDED)

    row = ask("update_memory", db="core", id=key, valid_until="2025-12-31T10:00:00+01:00")
    assert row["valid_until"] == "2025-12-31T09:00:00.000Z"
    assert texts(ask("recall", query="stork permit")) == []
    assert ask("update_memory", db="core", id=key, content=RENEWED)["valid_until"] == row["valid_until"]
    assert ask("update_memory", db="core", id=key, valid_until="")["valid_until"] is None
    assert texts(ask("recall", query="stork permit")) == [RENEWED]


def test_an_end_that_is_no_time_is_refused_and_saves_nothing(ask: Ask, call: Call) -> None:
    for name, arguments in (
        ("save_memory", {"content": ENDED, "category": "fact"}),
        ("smart_save_memory", {"content": ENDED, "category": "fact"}),
    ):
        reply = call(name, db="core", valid_until="soon", **arguments)
        assert (
            reply.body.decode()
            == "Error: Invalid arguments: valid_until is no time or date, such as 2026-01-31 or 2026-01-31T08:00:00Z"
        ), reply.body
    assert texts(ask("recall")) == []


def test_smart_save_memory_sets_the_end(ask: Ask) -> None:
    saved = ask("smart_save_memory", db="core", content=ENDED, category="fact", valid_until="2025-12-31")

    assert saved["memory"]["valid_until"] == "2025-12-31T23:59:59.999Z"


@pytest.mark.slow
def test_no_search_tool_of_any_dialect_answers_an_expired_memory(
    kernel: Kernel, ask: Ask, call: Call, clock: Clock
) -> None:
    then = clock.now
    save(ask, ENDED, valid_until="2026-01-05")
    add(ask, "pass", "The stork pass is blue", validUntil="2026-01-05")
    save(ask, RENEWED)
    add(ask, "gate", "The stork gate is open")
    clock.move(days=9)

    shown: dict[str, str] = {}
    for name, arguments in searches(kernel):
        reply = call(name, **arguments)
        assert reply.fault is None, (name, reply.body)
        shown[f"{name} {arguments.get('action', '')}".rstrip()] = reply.body.decode()

    assert [name for name, body in shown.items() if "number 12" in body or "is blue" in body] == []
    assert sorted(name for name, body in shown.items() if "number 47" in body) == [
        "hybrid_search",
        "recall",
        "search",
        "search_all",
        "semantic_search",
    ]
    assert sorted(name for name, body in shown.items() if "is open" in body) == [
        "memory_query context",
        "memory_query search",
        "recall",
    ]
    earlier = ask("recall", query="stork", as_of=then)["memories"]
    assert sum("number 12" in memory["text"] or "is blue" in memory["text"] for memory in earlier) == 2
    found = ask("memory_query", action="search", asOf=then)["results"]
    assert sorted(result["knowledge"]["title"] for result in found) == ["gate", "pass"]


def searches(kernel: Kernel) -> Iterator[tuple[str, dict[str, Any]]]:
    """A call of every tool that takes words to search for, and the context of a scope."""
    for entry in kernel.dispatch.tools.values():
        schema = input_schema(entry.tool)
        needed = {name: value for name, value in PLACES.items() if name in schema["properties"]}
        for words in {"query", "search"} & schema["properties"].keys():
            action = {"action": "search"} if "action" in schema["properties"] else {}
            yield entry.tool.name, {**needed, **action, words: "stork"}
    yield "memory_query", {"action": "context", "scopeType": "global"}

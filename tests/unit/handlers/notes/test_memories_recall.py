"""Recall finds by words, by meaning or by both, filters before it ranks, and says so where it finds nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handlers.notes.memory_types import BUILT_IN
from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.server import app
from tests.conftest import Call, Clock
from tests.unit.handlers.notes.conftest import CallOk, put, titles

NOW = "2026-01-02T03:04:05.678Z"
NOTES = [
    ("Use PostgreSQL", "We chose a relational database for the backend.", "architectural-decision", ["database"]),
    ("Dark mode", "The user prefers dark themes in every editor.", "user-preference", []),
    ("Safari login", "Session cookies are dropped by the browser.", "issue", ["safari", "cookies"]),
    ("Retries", "Every request is tried three times.", "recurring-pattern", []),
]
EMPTY: dict[str, Any] = {"memories": [], "count": 0}


@pytest.fixture
def filled(call_ok: CallOk, clock: Clock) -> CallOk:
    for title, content, kind, tags in NOTES:
        call_ok("memory_remember", title=title, content=content, memoryType=kind, tags=tags)
    return call_ok


def test_a_memory_is_shown_as_in_the_contract(filled: CallOk, folder: Path) -> None:
    answer = filled("memory_recall", query="which browser loses cookies", limit=1)
    (memory,) = answer["memories"]

    assert answer["count"] == 1
    assert 0.3 < memory.pop("score") <= 1
    assert memory == {
        "path": str(folder / "issue" / "safari-login.md"),
        "title": "Safari login",
        "memoryType": "issue",
        "tags": ["safari", "cookies"],
        "created": NOW,
        "modified": NOW,
        "content": "Session cookies are dropped by the browser.",
    }
    assert list(filled("memory_recall", isAll=True, limit=1)["memories"][0]) == [
        "path",
        "score",
        "title",
        "memoryType",
        "tags",
        "created",
        "modified",
        "content",
    ]


@pytest.mark.parametrize(
    ("kind", "query", "first"),
    [
        ("search", "cookies", "Safari login"),
        ("search", "postgresql", "Use PostgreSQL"),
        ("search", "safari", "Safari login"),
        ("vsearch", "SQL storage", "Use PostgreSQL"),
        ("vsearch", "night colours of the interface", "Dark mode"),
        ("query", "themes", "Dark mode"),
        ("query", "trying again after a failure", "Retries"),
    ],
)
def test_each_search_type_finds_what_it_is_for(filled: CallOk, kind: str, query: str, first: str) -> None:
    assert titles(filled("memory_recall", query=query, type=kind))[0] == first


def test_words_alone_find_nothing_by_meaning_and_the_default_is_meaning(filled: CallOk) -> None:
    assert titles(filled("memory_recall", query="automobile", type="search")) == []
    default = filled("memory_recall", query="SQL storage")
    assert default == filled("memory_recall", query="SQL storage", type="vsearch")


@pytest.mark.parametrize("kind", ["search", "vsearch", "query"])
def test_scores_lie_in_0_to_1_fall_and_do_not_depend_on_the_limit(filled: CallOk, kind: str) -> None:
    def scores(**more: Any) -> dict[str, float]:
        found = filled("memory_recall", query="themes and the database of the user", type=kind, **more)["memories"]
        assert [memory["score"] for memory in found] == sorted((memory["score"] for memory in found), reverse=True)
        return {memory["title"]: memory["score"] for memory in found}

    every = scores()
    assert every
    assert all(0 < score <= 1 for score in every.values())
    assert scores(limit=1).items() <= every.items()
    only = scores(memoryType="user-preference")
    assert set(only) == {"Dark mode"}


@pytest.mark.slow
def test_a_type_is_filtered_by_the_front_matter_before_anything_is_ranked(call_ok: CallOk, folder: Path) -> None:
    for number in range(120):
        put(folder, f"learning/n{number}.md", f"---\nmemory_type: learning\n---\n\nthe cat sat on mat {number}\n")
    put(folder, "learning/odd.md", "---\nmemory_type: Design Decision\n---\n\na feline, seldom seen\n")
    for kind in ("search", "vsearch", "query"):
        found = call_ok(
            "memory_recall", query="the cat sat on a feline", type=kind, memoryType="designDecision", limit=1
        )
        assert titles(found) == ["Odd"]
    assert titles(call_ok("memory_recall", isAll=True, memoryType="design_decision")) == ["Odd"]
    assert call_ok("memory_recall", isAll=True)["count"] == 100
    assert call_ok("memory_recall", isAll=True, limit=1000)["count"] == 121
    assert call_ok("memory_recall", query="cat", type="search")["count"] == 10
    assert call_ok("memory_recall", query="cat", type="search", limit=90)["count"] == 90


def test_all_memories_come_in_the_order_of_their_paths_with_a_score_of_0(filled: CallOk, folder: Path) -> None:
    found = filled("memory_recall", isAll=True, query="ignored")["memories"]

    assert [memory["path"] for memory in found] == sorted(memory["path"] for memory in found)
    assert {memory["score"] for memory in found} == {0}
    assert len(found) == 4


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (
            {"query": "zebra", "type": "search"},
            {"message": 'No memory files found for query: "zebra". Try creating a memory first with memory_remember.'},
        ),
        (
            {"isAll": True},
            {"message": "No memory files found for all memories. Try creating a memory first with memory_remember."},
        ),
        (
            {"isAll": True, "memoryType": "designDecision"},
            {
                "message": "No memory files found for design-decision memories. "
                "Try creating a memory first with memory_remember."
            },
        ),
        (
            {"isAll": True, "memoryType": "//"},
            {"message": "No memory files found for all memories. Try creating a memory first with memory_remember."},
        ),
        (
            {},
            {"error": "query is required when isAll is false. Either provide a query or set isAll=true."},
        ),
        (
            {"query": " \n", "memoryType": "issue"},
            {"error": "query is required when isAll is false. Either provide a query or set isAll=true."},
        ),
    ],
)
def test_empty_result_has_a_message(call_ok: CallOk, arguments: dict[str, Any], answer: Any) -> None:
    assert call_ok("memory_recall", **arguments) == EMPTY | answer


def test_a_query_about_something_else_finds_nothing_rather_than_noise(filled: CallOk) -> None:
    assert filled("memory_recall", query="volcano eruption")["count"] == 0


@pytest.mark.parametrize(
    "query",
    [
        "c++",
        "don't",
        "foo-bar",
        "user@example.com",
        '"',
        "AND",
        "*",
        "title:x",
        "(" * 999,
        "NEAR(a b)",
        "\0",
        "^",
        "-x",
        "'; DROP TABLE doc; --",
        '"; touch /tmp/x; echo "',
        "日本語",
        "\u202e",
        "a\0b",
    ],
)
@pytest.mark.parametrize("kind", ["search", "vsearch", "query"])
def test_any_text_is_a_query(filled: CallOk, kind: str, query: str) -> None:
    answer = filled("memory_recall", query=query, type=kind)
    assert set(answer) <= {"memories", "count", "message"}


def test_cjk_is_found_by_its_words(call_ok: CallOk) -> None:
    call_ok("memory_remember", title="会議", content="来週の会議は火曜日です", memoryType="context")
    assert titles(call_ok("memory_recall", query="会議", type="search")) == ["会議"]
    assert titles(call_ok("memory_recall", query="火曜日", type="query")) == ["会議"]


def test_without_a_model_every_search_type_goes_by_words(config: Config, caller: Callable[[Dispatch], Call]) -> None:
    kernel = app.open_kernel(config._replace(model=None))
    call = caller(kernel.dispatch)
    for title, content, kind, tags in NOTES:
        assert call("memory_remember", title=title, content=content, memoryType=kind, tags=tags).fault is None
    answers = [
        json.loads(call("memory_recall", query="dark editor", type=kind).body)
        for kind in ("search", "vsearch", "query")
    ]
    assert titles(answers[0]) == ["Dark mode"]
    assert answers[0] == answers[1] == answers[2]
    kernel.store.close()


def test_dirty_files_of_the_real_world_are_found_and_left_as_they_are(call_ok: CallOk, folder: Path) -> None:
    texts: dict[str, bytes] = {
        "learning/comma.md": b"---\ntags: db, infra\n---\nravens one\n",
        "learning/plain.md": b"ravens two",
        "learning/crlf.md": b"---\r\nmemory_type: issue\r\ntags:\r\n  - a\r\n---\r\nravens\r\nthree\r\n",
        "learning/bom.md": b"\xef\xbb\xbf---\nmemory_type: issue\n---\nravens four\n",
        "learning/bytes.md": b"ravens \xff\xfe five\n",
        "learning/hr.md": b"---\nravens six, then prose\n---\nmore\n",
        "learning/broken.md": b"---\nmemory_type: [unclosed\ntags: {a\n---\nravens seven\n",
        "learning/.md": b"ravens eight",
        "decision/architectural/old.md": b"ravens nine",
        "learning/empty.md": b"",
        "index.md": b"ravens of the wiki",
        "log.md": b"- [x] ravens",
    }
    files = {put(folder, path, text): text for path, text in texts.items()}
    found = call_ok("memory_recall", query="ravens", type="search", limit=50)["memories"]
    shown = {memory["path"].removeprefix(f"{folder}/"): memory for memory in found}

    assert set(shown) == set(texts) - {"index.md", "log.md", "learning/empty.md"}
    assert shown["learning/comma.md"]["tags"] == ["db", "infra"]
    assert (shown["learning/crlf.md"]["memoryType"], shown["learning/crlf.md"]["content"]) == (
        "issue",
        "ravens\r\nthree",
    )
    assert shown["learning/bom.md"]["memoryType"] == "issue"
    assert shown["learning/bytes.md"]["content"] == "ravens \ufffd\ufffd five"
    assert shown["learning/hr.md"]["content"] == "---\nravens six, then prose\n---\nmore"
    assert shown["decision/architectural/old.md"]["memoryType"] == "decision"
    assert {path: path.read_bytes() for path in files} == files


def test_recall_of_common_finds_notes(call_ok: CallOk, call: Call) -> None:
    call_ok("memory_remember", title="Car", content="My automobile goes to the garage in May.", memoryType="context")
    found = json.loads(call("recall", query="vehicle maintenance", scope="context").body)["memories"]
    assert [memory["id"] for memory in found] == ["notes:default/context/car.md"]


@pytest.mark.parametrize("asked", [{"query": "car", "type": "search"}, {"isAll": True}], ids=["query", "all"])
def test_unknown_type_is_answered_with_the_types_that_exist(
    call_ok: CallOk, folder: Path, asked: dict[str, Any]
) -> None:
    put(folder, "diary/a.md", b"ravens")

    def message(kind: str) -> str:
        return call_ok("memory_recall", memoryType=kind, **asked)["message"]

    types = ", ".join(kind.name for kind in BUILT_IN)
    assert message("learnings").endswith(f'. There is no memory type "learnings", but {types}.')
    assert message("learning").endswith(". Try creating a memory first with memory_remember.")
    if "query" in asked:
        assert message("diary").endswith(". Try creating a memory first with memory_remember.")

"""Memories are searched within their session, ranked, and listed."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kernel.server.app import Kernel
from tests.conftest import Clock
from tests.unit.handlers.sessions.calls import Ask, ids, opened


@pytest.mark.slow
def test_a_small_session_finds_its_memory_among_many_others(kernel: Kernel, ask: Ask) -> None:
    bound = kernel.dispatch.tools["remember"].tool

    def crowd(tx: Any, begin: int) -> None:
        for number in range(begin, begin + 500):
            text = f"How to brew green tea number {number}, with water at seventy degrees"
            bound.handler(tx, bound.request(content=text, session_id=f"other-{number % 7}"))

    for begin in range(0, 3000, 500):  # a call has a second
        kernel.store.write_sync(partial(crowd, begin=begin))
    ask("remember", content="The garage opens at nine", session_id="mine")
    for query in ("green tea water degrees", "", "garage", "when can I bring the car", "number 17 !?"):
        (found,) = ask("search_memory", query=query, session_id="mine")
        assert (found["content"], found["session_id"]) == ("The garage opens at nine", "mine")
    assert ask("search_memory", query="garage", session_id="unknown") == []
    assert {found["session_id"] for found in ask("search_memory", query="garage", session_id="other-3")} == {"other-3"}


def test_a_given_top_p_returns_only_the_newest_share(ask: Ask, clock: Clock) -> None:
    ask("remember", content="kubernetes ingress timeout is 60 seconds", session_id="s")
    for number in range(9):
        clock.move(days=1)
        ask("remember", content=f"lunch menu {number}", session_id="s")
    query = {"query": "kubernetes ingress timeout", "session_id": "s", "limit": 10}
    assert ids(ask("search_memory", **query, top_p=0.1)) == [10]
    assert ids(ask("search_memory", **query))[0] == 1


def test_notes_written_within_a_second_are_ranked_by_meaning(ask: Ask, clock: Clock) -> None:
    texts = ["Production is released by GitHub Actions after a tag is pushed", "The coffee machine is on floor two"]
    for content in [*texts, "The meeting room is booked by phone", "Parking is behind the house", "Lunch is at noon"]:
        ask("remember", content=content, session_id="s")
        clock.move(milliseconds=15)
    assert ids(ask("search_memory", query="how do we ship to prod", session_id="s"))[0] == 1


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


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: ascii(query)[:20])
def test_any_query_returns_results(ask: Ask, query: str) -> None:
    ask("remember", content='sqlite-vec and "quotes": a.b/c don\'t c++ and 日本語', session_id="s")
    ask("remember", content="A short note about 日本語 and what else there is.", session_id="s")
    assert len(ask("search_memory", query=query, session_id="s", top_p=1)) == 2


def test_words_with_punctuation_match(ask: Ask) -> None:
    ask("remember", content="the sqlite-vec embedding", session_id="s", tags="bench", metadata_json='{"k": "MEM-12"}')
    for query in ("sqlite-vec", '"embedding"', "tags:bench", "MEM-12", "bench"):
        (found,) = ask("search_memory", query=query, session_id="s")
        assert found["fts_hit"], query


def test_an_empty_query_returns_the_newest_share_of_the_session(ask: Ask, clock: Clock) -> None:
    for number in range(5):
        ask("remember", content=f"note {number}", session_id="s")
        clock.move(hours=1)
    found = ask("search_memory", query="", session_id="s")
    assert [(memory["id"], memory["score"], memory["fts_hit"]) for memory in found] == [
        (5, 1.300192, False),
        (4, 1.300385, False),
        (3, 1.300577, False),
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
        ask("remember", content="The sqlite-vec extension fails", session_id="s")
        for query, best in (("automobile garage", 1), ("sqlite-vec", 2)):
            first, second = ask("search_memory", query=query, session_id="s", top_p=1)
            assert (first["id"], first["fts_hit"], second["fts_hit"]) == (best, False, False)


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

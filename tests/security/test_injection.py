"""Statements and the syntax of a search are text, wherever it is put."""

import itertools
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.core.config import Config
from kernel.server.app import Kernel, open_kernel
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.security.calls import CALLS

STATEMENTS = (
    "'; DROP TABLE doc; --",
    "' OR '1'='1",
    '" OR ""="',
    "x') UNION SELECT name FROM sqlite_schema --",
    "1; VACUUM",
    "[doc]; DROP TABLE doc",
    "]",
    "`doc`",
    "%",
    "_",
    "\\",
    "%' ESCAPE '\\",
    "'||(SELECT hex(randomblob(9)))||'",
    "$1",
    ":id",
    "@id",
    "?1",
    "NULL",
    "rowid",
    "name; --",
    "created_at DESC; DROP TABLE doc",
    "load_extension('x')",
)
# As given to FTS5 raw, most of these are errors, and some silently search one column alone.
PROBES = (
    "c++",
    "don't",
    "foo-bar",
    "user@example.com",
    "a.b",
    "https://example.com/a?b=c#d",
    '"',
    "'",
    "AND",
    "OR",
    "NOT",
    "NEAR(a b)",
    "NEAR",
    "*",
    "car*",
    "^car",
    "nosuch:x",
    "title:x",
    "{title}:x",
    "content : x",
    "-x",
    "+x",
    "(",
    ")",
    "((",
    "a AND",
    "AND a",
    "a OR OR b",
    "{",
    "}",
    "[",
    ",",
    ":",
    ";",
    "\\",
    "/",
    "%",
    "_",
    "?",
    "!",
    "…",
    "“x”",
    "x\ty",
    "x\ny",
    "日本",
    "😀",
    "e\u0301",
    "\u202ex",
    "\u200b",
    "a\u00adb",
    "1e9",
    "-1",
    "0x10",
    "NULL",
    "true",
)
LONG = ("(" * 2000, '"' * 999, "a " * 999, "* " * 999)  # no word beside them is heard
EVERY = int(os.environ.get("MISTAKES_EVERY", "6"))  # 1 tries all of them everywhere
DECLARED = {None, "invalid", "not_found", "conflict", "blocked", "disabled"}
WORD = "zanzibar"
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "recall": {},
    "search": {"db": "core"},
    "search_all": {},
    "hybrid_search": {"db": "core"},
    "memory_query": {"action": "search"},
    "memory_recall": {},
    "search_memory": {"session_id": "s"},
    "search_nodes": {},
}
FIELDS = {"memory_query": "search"}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("injection")
    running = open_kernel(Config(data=folder / "data", environment={"CODE_MEMORY_ENABLE_GRAPH": "1"}))
    yield running
    running.store.close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel in which nothing is stored that a probe could rather mean."""
    running = open_kernel(Config(data=tmp_path / "data"))
    yield running
    running.store.close()


def tables(kernel: Kernel) -> Any:
    """Return the structure of the file."""
    db = apsw.Connection(str(kernel.config.file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()
    finally:
        db.close()


def strings(arguments: Mapping[str, Any]) -> Iterator[str]:
    """The arguments that are texts, and some that many tools have."""
    yield from (name for name, value in arguments.items() if isinstance(value, str) and name != "action")
    yield from {"sort", "order", "orderBy", "group_by", "filter", "category", "scopeId", "session_id"} - set(arguments)


def test_statements_in_any_text_of_any_tool_are_text(
    kernel: Kernel, caller: Callable[[Dispatch], Call], caplog: Any, catalogue: Catalogue
) -> None:
    call, before, times = caller(kernel.dispatch), tables(kernel), 0
    turn = itertools.count()
    for (tool, _), arguments in CALLS.items():
        for field in strings(arguments):
            for text in STATEMENTS[next(turn) % EVERY :: EVERY]:
                reply = call(tool, **{**arguments, field: text})
                assert reply.fault in {None, "invalid", "not_found", "conflict", "blocked", "disabled"}, (
                    tool,
                    field,
                    text,
                )
                times += 1
    assert tables(kernel) == before
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    catalogue("S09", injected="statements in a text", times=times, outcome="no error, no table changed")


@pytest.mark.parametrize("text", STATEMENTS)
def test_a_statement_comes_back_as_it_was_given(kernel: Kernel, caller: Callable[[Dispatch], Call], text: str) -> None:
    call = caller(kernel.dispatch)
    call("add_memory", path=f"kept/{STATEMENTS.index(text)}", content=text)
    found = json.loads(call("read_memory", path=f"kept/{STATEMENTS.index(text)}").structured or b"")
    assert found["content"] == text


@pytest.mark.parametrize("wild", ["%", "_", "\\"])
def test_a_wildcard_finds_itself_alone(kernel: Kernel, caller: Callable[[Dispatch], Call], wild: str) -> None:
    call = caller(kernel.dispatch)
    for content in (f"the rate{wild}of", "the rate of nothing"):
        call("save_memory", db="hlg", content=content, category="fact")
    found = json.loads(call("search", db="hlg", query=wild).body)["memories"]
    assert {memory["content"] for memory in found} == {f"the rate{wild}of"}


def keep(call: Call) -> None:
    """The same in every dialect: a word to be found, and those that are syntax, since the others are not looked for."""
    text = f"The harbour of {WORD} is deep. AND, OR, NOT and NEAR are words of it, and so is title x."
    call("add_memory", path="port", content=text)
    call("save_memory", db="core", content=text, category="fact")
    call("memory_knowledge", action="add", scopeType="global", title="port", content=text)
    call("memory_remember", title="port", content=text, memoryType="context")
    call("remember", content=text, session_id="s")
    call("create_entities", entities=[{"name": "port", "entityType": "place", "observations": [text]}])
    call("memory", command="create", path="/memories/port", file_text=text)


def test_the_syntax_of_a_search_is_words(
    empty: Kernel, caller: Callable[[Dispatch], Call], caplog: Any, catalogue: Catalogue
) -> None:
    """No probe is an error, and beside a word none keeps a search from the hits of the word alone."""
    call, wrong, times = caller(empty.dispatch), [], 0
    keep(call)
    for tool, more in SEARCHES.items():
        field = FIELDS.get(tool, "query")
        assert WORD.encode() in call(tool, **more, **{field: WORD}).body, tool
        for probe in (*PROBES, *LONG):
            alone = call(tool, **more, **{field: probe})
            beside = call(tool, **more, **{field: WORD if probe in LONG else f"{probe} {WORD}"})
            times += 2
            if alone.fault not in {None, "invalid"} or beside.fault or b"harbour" not in beside.body:
                wrong.append((tool, probe[:20], alone.fault, beside.fault, beside.body[:200]))
    assert wrong == []
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    catalogue("S10", injected="syntax of FTS5 in a query", times=times, outcome="words, with the same hits")

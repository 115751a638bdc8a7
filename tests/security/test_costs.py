"""A call that costs the store too much is ended, says so as its dialect does, and leaves nothing of itself behind."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.calls.dispatch import Dispatch
from kernel.calls.tools import Reply
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.core.limits import CallLimits, Limits
from kernel.engines.sqlite import connection
from kernel.engines.sqlite.connection import Connection
from kernel.server.app import Kernel, open_kernel
from kernel.store.context import CallContext, StoreContext
from tests.catalogue import Catalogue
from tests.conftest import Call, everything
from tests.security.calls import CALLS
from tests.unit.store_fixtures import STATEMENTS, THING_CONTEXT, add, names, thing_store

ANYBODY = CallContext("things", "add", "tester")
SHORT = THING_CONTEXT._replace(call_limits=CallLimits(milliseconds=50))
STEPS = (1, 2, 5, 15, 60)
FREE = ["health", "memory_forget", "memory_import", "memory_list_types"]  # so called they ask the engine for nothing


class CountedBudget:
    """A budget that ends its call at the `checks_left`th check, and never for 0."""

    checks_left = 0

    def __init__(self) -> None:
        self.new_statement = False
        self.left: float | None = None

    def __call__(self) -> bool:
        if self.left is None:
            return False
        if CountedBudget.checks_left:
            CountedBudget.checks_left -= 1
            self.left = self.left if CountedBudget.checks_left else -1.0
        return self.left < 0


@pytest.fixture
def cutting(monkeypatch: pytest.MonkeyPatch, config: Config) -> Iterator[Kernel]:
    """A kernel whose engine asks at every step whether to go on, but for the few that find a tokenizer."""

    tokenize = connection.Connection.tokenize

    def untouched(db: connection.Connection, text: str) -> Any:
        left, CountedBudget.checks_left = CountedBudget.checks_left, 0
        found = tokenize(db, text)
        CountedBudget.checks_left = left
        return found

    monkeypatch.setattr(connection.Connection, "tokenize", untouched)
    monkeypatch.setattr(connection, "Budget", CountedBudget)
    monkeypatch.setattr(connection, "STEPS", 1)
    running = open_kernel(config._replace(environment={"CODE_MEMORY_ENABLE_GRAPH": "1"}))
    yield running
    CountedBudget.checks_left = 0
    running.store.close()


def test_every_tool_ended_at_any_step_says_so_and_has_done_nothing(
    cutting: Kernel, caller: Callable[[Dispatch], Call], catalogue: Catalogue
) -> None:
    call = caller(cutting.dispatch)
    ended = set[str]()
    times = 0
    for (tool, action), arguments in CALLS.items():
        for steps in STEPS:
            cutting.store.write_sync(lambda _tx: None)  # so that nothing of the last call, such as a count, follows
            before = everything(cutting)
            CountedBudget.checks_left = steps
            reply = call(tool, **arguments)
            cut, CountedBudget.checks_left = not CountedBudget.checks_left, 0
            if not cut:
                break
            times += 1
            ended.add(tool)
            assert (reply.fault, b"takes too long" in reply.body) == ("invalid", True), (tool, action, steps, reply)
            assert everything(cutting) == before, (tool, action, steps)
    assert sorted(set(cutting.dispatch.tools) - ended) == FREE
    catalogue("S12", injected="calls ended in the engine", times=times, outcome="the dialect's error, nothing changed")


def test_a_statement_without_end_is_ended_and_its_neighbours_are_not(tmp_path: Path) -> None:
    """They share a transaction, which the engine ends as a whole; the calls then run one by one."""
    running = thing_store(tmp_path / "things.db", SHORT)
    running.start()

    async def work() -> list[Any]:
        def forever(tx: connection.Tx) -> Any:
            tx.run("thing.add", name="half")
            return tx.one("thing.forever", int)

        works = [add("before"), forever, add("after")]
        futures = [running.write(work, ANYBODY)[1] for work in works]
        futures.append(running.read(lambda tx: tx.one("thing.forever", int), ANYBODY)[1])
        return await asyncio.gather(*futures)

    try:
        answers = [answer.message if isinstance(answer, Fault) else answer for answer in asyncio.run(work())]
        assert answers == ["before", connection.TOO_LONG, "after", connection.TOO_LONG]
        assert running.read_sync(names) == ["before", "after"]
        reading = running.read_now(lambda tx: tx.one("thing.forever", int), ANYBODY)
        assert isinstance(reading, Fault)
        assert (reading.code, reading.message) == ("invalid", connection.TOO_LONG)
    finally:
        running.close()


def test_time_in_python_counts_like_time_in_sql(tmp_path: Path) -> None:
    """A loop between statements ends its call, even one that goes on after the refusal; its neighbours are unharmed."""
    running = thing_store(tmp_path / "things.db", SHORT)
    running.start()

    def busy(tx: connection.Tx) -> Any:
        if not tx.readonly:
            tx.run("thing.add", name="half")
        begun = time.thread_time()
        while time.thread_time() < begun + 0.06:
            pass
        with suppress(Fault):
            return names(tx)
        return names(tx)

    def busy_without_statements(tx: connection.Tx) -> Any:
        while True:
            tx.check_time()

    async def work() -> list[Any]:
        futures = [running.write(work, ANYBODY)[1] for work in (add("before"), busy, add("after"))]
        futures += [running.read(work, ANYBODY)[1] for work in (busy, busy_without_statements, names)]
        return await asyncio.gather(*futures)

    try:
        answers = [answer.message if isinstance(answer, Fault) else answer for answer in asyncio.run(work())]
        long = connection.TOO_LONG
        assert answers[:5] == ["before", long, "after", long, long]
        assert running.read_sync(names) == ["before", "after"]
    finally:
        running.close()


def test_time_between_statements_and_of_earlier_calls_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(connection.time, "thread_time", lambda: now[0])
    watch = connection.Budget()

    def stopped(*spent: float) -> bool:
        """Whether a statement is ended that has spent so many seconds when it is asked."""
        watch.new_statement = True
        asked = [watch()]
        for seconds in spent:
            now[0] += seconds
            asked.append(watch())
        return any(asked)

    assert not stopped(9.0)  # nobody's call
    watch.left = 0.1
    assert not stopped(0.05)
    now[0] += 9.0
    assert not stopped(0.04)
    assert stopped(0.02)
    watch.left = 0.2
    assert not stopped(0.19)
    assert stopped(0.02)
    watch.left = None
    assert not stopped(9.0)


@pytest.mark.parametrize("most", [1 << 16, 1 << 20])
def test_an_answer_that_is_too_large_is_refused_and_nothing_of_the_call_stays(
    tmp_path: Path, caller: Callable[[Dispatch], Call], most: int, catalogue: Catalogue
) -> None:
    limits = Limits(answer=most)
    running = open_kernel(Config(data=tmp_path / "data", model=None, limits=limits))
    call = caller(running.dispatch)
    try:
        call("add_memory", path="large", content="x" * most)
        call("save_memory", db="core", content="x" * (most // 50), category="fact", tags=["large"])
        for number in range(60):
            call("save_memory", db="core", content=f"{number} " + "x" * (most // 50), category="fact")
        before = everything(running)
        refused: list[Reply] = [
            call("read_memory", path="large"),
            call("get_memories", db="core", limit=100),
            call("replace_memory", path="large", content="y" * most, response="content"),
        ]
        for reply in refused[:2]:
            assert (reply.fault, f"larger than {most} bytes".encode() in reply.body) == ("invalid", True)
        assert everything(running) == before
        assert call("list_memories").fault is None
    finally:
        running.store.close()
    catalogue("S12", injected=f"answers past {most} bytes", times=2, outcome="refused, nothing changed")


def test_a_value_that_is_too_large_for_the_store_is_refused(tmp_path: Path) -> None:
    running = thing_store(tmp_path / "things.db", StoreContext(STATEMENTS, call_limits=CallLimits(value=1 << 20)))
    running.start()
    try:
        with pytest.raises(Fault, match="larger than QUIPU_LIMIT_STORE_VALUE"):
            running.write_sync(add("x" * ((1 << 20) + 1)))
        running.write_sync(add("x" * 1_000_000))
        assert len(running.read_sync(names)) == 1
    finally:
        running.close()


@pytest.mark.parametrize("readonly", [False, True])
def test_the_engine_itself_is_kept_within_what_we_need(tmp_path: Path, readonly: bool) -> None:
    """No trigger runs, no file is attached, no shadow table written, for any content of the file."""
    file = tmp_path / "things.db"
    theirs = apsw.Connection(str(file))
    theirs.execute(
        "CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE spied (name TEXT);"
        "CREATE TRIGGER spy AFTER INSERT ON thing BEGIN INSERT INTO spied VALUES (new.name); END;"
        "CREATE VIRTUAL TABLE words USING fts5 (word)"
    )
    theirs.close()
    db = Connection(file, THING_CONTEXT, readonly=readonly)
    attached = "ATTACH ':memory:' AS one"
    deep = "SELECT " + "(" * 120 + "1" + "+1)" * 120
    many = "SELECT " + ",".join(f"?{number}" for number in range(1, 1002))
    refused = [
        f"{attached}; ATTACH ':memory:' AS two",
        deep,
        many,
        'SELECT "thing"',
        "SELECT 1 WHERE 'a' LIKE '" + "%" * 30_000 + "'",
        "SELECT load_extension('x')",
    ]
    for text in [*refused, *([] if readonly else ["DELETE FROM words_data"])]:
        with pytest.raises((apsw.SQLError, apsw.ReadOnlyError, apsw.TooBigError)):
            db.values(text)
    if not readonly:
        db.script("INSERT INTO thing (name) VALUES ('a')")
        assert db.values("SELECT count(*) FROM spied") == [(0,)]
    db.close()


BOMBS = {
    "json": json.dumps({"entries": {"tools": []}, "more": [[]] * 400_000}),
    "json numbers": json.dumps({"entries": {"tools": []}, "more": ["@"] * 6000}).replace('"@"', "1e300"),
    "yaml": "- []\n" * 600_000,
    "yaml lists on a line": "entries: [" + "[]," * 300_000 + "]",
}


@pytest.mark.parametrize("what", BOMBS)
def test_an_import_of_too_many_values_is_refused_before_it_is_read(call: Call, what: str) -> None:
    reply = call("memory_import", action="import", content=BOMBS[what], format=what.partition(" ")[0])
    found = json.loads(reply.body)
    assert (found["success"], found["created"]) == (False, 0)
    assert found["errors"][0]["error"].startswith("Too large for one request")

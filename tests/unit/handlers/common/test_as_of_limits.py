"""recall with as_of over a long history reads little, finds the matches of the filters and answers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handlers.common.schemas import Recalled
from kernel.core.config import Config
from kernel.memories import as_of
from kernel.search.documents import Document
from kernel.server.app import Kernel
from kernel.store import history
from kernel.store.history import PastText
from kernel.store.transaction import Tx
from tests.conftest import Call, Clock

WRITTEN, THEN, CHANGED = "2026-01-01T00:00:00.000Z", "2026-01-01T12:00:00.000Z", "2026-01-02T00:00:00.000Z"
TRUCK = "The truck would not start this morning"
MANY = 1200
SLICE = 5000
QUESTION = (
    "which of the delivery trucks would not start in the cold morning before the new battery from the old garage came"
)


@pytest.fixture
def config(config: Config, tmp_path: Path) -> Config:
    """With the time of a call on a machine three times as slow."""
    limits = config.limits
    return config._replace(limits=limits._replace(store_milliseconds=3 * limits.store_milliseconds))


def found(call: Call, **asked: Any) -> list[str]:
    reply = call("recall", as_of=THEN, floor="none", **asked)
    assert reply.fault is None, reply.body
    return [memory.id for memory in msgspec.json.decode(reply.body, type=Recalled).memories]


def forget(kernel: Kernel, space: str, count: int, text: str, reason: str = "") -> None:
    """Writes the history of memories that stood then and were deleted since."""

    def write(tx: Tx, start: int) -> None:
        for number in range(start, min(count, start + SLICE)):
            key = f"{reason}{number}"
            history.append(tx, space, key, "added", after=text, at=f"2026-01-01T01:00:{number % 60:02}.000Z")
            history.append(tx, space, key, "deleted", before=text, reason=reason, at=CHANGED)

    for start in range(0, count, SLICE):
        kernel.store.write_sync(partial(write, start=start))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every document that is read from the index or from the history."""
    rows: list[object] = []
    plain = Tx.all

    def counted(tx: Tx, query: str, row: Callable[..., Any], /, **params: object) -> list[Any]:
        answer = plain(tx, query, row, **params)
        rows.extend(answer if row in (Document, PastText) else ())
        return answer

    monkeypatch.setattr(Tx, "all", counted)
    return rows


@pytest.mark.slow
def test_list_by_tags_reads_only_what_has_them(call: Call, clock: Clock, read: list[object]) -> None:
    clock.now = WRITTEN
    for name in ("kept", "gone"):
        reply = call("save_memory", db="core", content=f"{TRUCK} {name}", category="fact", tags=["cars"])
        assert reply.fault is None
    for number in range(60):
        clock.move(seconds=1)
        assert call("add_memory", path=f"m{number}", content=TRUCK).fault is None
    clock.now = CHANGED
    for number in range(30):
        assert call("drop_memory", path=f"m{number}").fault is None
    changed = call("update_memory", db="core", id="mem_1", content="sold")
    assert changed.fault is None
    read.clear()

    assert sorted(found(call, tags=["cars"], limit=5)) == ["brain:core/mem_1", "brain:core/mem_2"]
    assert len(read) == 2


@pytest.mark.slow
def test_list_of_a_folder_reads_only_what_is_in_it(call: Call, clock: Clock, read: list[object]) -> None:
    clock.now = WRITTEN
    for path in ("car/kept", "car/gone"):
        assert call("add_memory", path=path, content=TRUCK).fault is None
    for number in range(60):
        assert call("add_memory", path=f"m{number}", content=TRUCK).fault is None
    clock.now = CHANGED
    for path in ("car/gone", *(f"m{number}" for number in range(30))):
        assert call("drop_memory", path=path).fault is None
    read.clear()

    assert sorted(found(call, scope="car", limit=5)) == ["paths/car/gone", "paths/car/kept"]
    assert len(read) == 2


@pytest.mark.parametrize("query", ["", "truck"])
def test_deleted_memory_of_a_scope_is_found_among_more_of_another_than_a_search_reads(
    kernel: Kernel, call: Call, query: str
) -> None:
    assert call("remember", content="It was sold", session_id="wanted").fault is None
    forget(kernel, "sessions", 1, TRUCK, "of session wanted")
    forget(kernel, "sessions", MANY, TRUCK, "of session other")

    assert found(call, query=query, scope="wanted") == ["sessions/of session wanted0"]


def test_relations_of_the_graph_take_no_place_of_memories(kernel: Kernel, call: Call) -> None:
    forget(kernel, "paths", 1, TRUCK)
    forget(kernel, "graph:relation", MANY, f"{TRUCK} again")

    assert found(call, query="truck again") == ["paths/0"]


@pytest.mark.parametrize("query", ["", "truck"])
def test_scope_is_applied_before_the_changed_memories_are_counted(
    call: Call, clock: Clock, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(as_of, "MAX_CANDIDATES", 2)
    clock.now = WRITTEN
    entity = msgspec.json.decode(call("create_entity", db="core", name="Truck", type="system").body)["id"]
    clock.move(seconds=1)
    given = {"db": "core", "category": "fact"}
    others = [call("save_memory", **given, content=f"{TRUCK} {number}").body for number in range(3)]
    clock.now = CHANGED
    assert call("update_entity", db="core", id=entity, description="Sold").fault is None
    for other in others:
        key = msgspec.json.decode(other)["id"]
        assert call("update_memory", db="core", id=key, content=f"Sold {key}").fault is None

    assert found(call, query=query, scope="entity") == [f"brain:core/{entity}"]


@pytest.mark.slow
def test_question_over_a_hundred_thousand_changes_is_answered(kernel: Kernel, call: Call) -> None:
    forget(kernel, "paths", 100_000, " ".join(["She plays the violin every day at noon"] * 25)[:800])

    assert len(found(call, query=QUESTION, limit=5)) == 5
    assert len(found(call, limit=5)) == 5

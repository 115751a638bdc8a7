"""An undo leaves files as a call could have left them: each path once, in its store, and archived ones alone."""

from typing import Any

import pytest

from kernel.core.errors import Fault
from kernel.operations import consistency
from kernel.operations.index_check import Finding
from kernel.operations.undo import undo
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit
from tests.conftest import Call, Clock, everything
from tests.unit.rest_client import RestClient


def memory(call: Call, command: str, path: str, **more: Any) -> None:
    assert call("memory", command=command, path=f"/memories/{path}", **more).fault is None


def create(call: Call, path: str) -> None:
    memory(call, "create", path, file_text="x")


def paths(rest: RestClient, store: str = "/memstore_memories") -> list[str]:
    return [one["path"] for one in rest("GET", f"{store}/memories")["data"]]


def last_call(kernel: Kernel) -> int:
    return kernel.store.read_sync(lambda tx: audit.read(tx, 1))[0].id


def take_back(kernel: Kernel, number: int) -> None:
    """Undoes a call; the store is consistent after it, and after a refusal as it was."""
    before = everything(kernel)
    try:
        undo(kernel.config.file, kernel.store.context, app.DIALECTS, number)
    except Fault:
        assert everything(kernel) == before
        raise
    finally:
        assert consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS) == []


def test_undo_of_the_first_file_leaves_the_second_in_its_store(call: Call, rest: RestClient, kernel: Kernel) -> None:
    create(call, "a.txt")
    first = last_call(kernel)
    create(call, "b.txt")

    take_back(kernel, first)

    assert paths(rest) == ["/b.txt"]
    assert [one["id"] for one in rest("GET", "")["data"]] == ["memstore_memories"]


def test_undo_takes_no_store_from_its_memories(rest: RestClient, kernel: Kernel, call: Call) -> None:
    """The tool makes its store anew after its deletion."""
    rest("DELETE", "/memstore_memories")
    create(call, "a.txt")
    first = last_call(kernel)
    create(call, "b.txt")

    with pytest.raises(Fault, match="or is needed by what came later") as refused:
        take_back(kernel, first)

    assert refused.value.code == "conflict"
    assert paths(rest) == ["/a.txt", "/b.txt"]


def test_check_tells_memories_without_their_store(call: Call, kernel: Kernel) -> None:
    create(call, "a.txt")
    kernel.store.write_sync(lambda tx: tx.run("files.memory_stores.delete", id="memstore_memories"))
    found = consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS)
    assert found == [Finding("references", 2, "rows that refer to a row that is not there", True)]


@pytest.mark.parametrize("later", ["x/y.txt", "x"])
def test_deleted_file_does_not_come_back_to_a_path_that_is_taken(
    call: Call, rest: RestClient, kernel: Kernel, later: str
) -> None:
    create(call, "x")
    memory(call, "delete", "x")
    deleted = last_call(kernel)
    create(call, later)

    with pytest.raises(Fault) as refused:
        take_back(kernel, deleted)

    assert refused.value.code == "conflict"
    assert paths(rest) == [f"/{later}"]


def test_renamed_file_does_not_come_back_below_a_file(call: Call, rest: RestClient, kernel: Kernel) -> None:
    create(call, "d/x")
    call("memory", command="rename", old_path="/memories/d/x", new_path="/memories/y")
    renamed = last_call(kernel)
    create(call, "d")

    with pytest.raises(Fault, match=r"^/d/x cannot be restored: the memory mem_\w+ is at /d$") as refused:
        take_back(kernel, renamed)

    assert refused.value.code == "conflict"
    assert paths(rest) == ["/d", "/y"]


@pytest.mark.slow
def test_nothing_comes_back_into_a_store_archived_since(
    rest: RestClient, store: str, kernel: Kernel, clock: Clock
) -> None:
    made = rest("POST", f"{store}/memories", {"path": "/a", "content": ""})
    rest("DELETE", f"{store}/memories/{made['id']}")
    deleted = last_call(kernel)
    clock.move(seconds=1)
    rest("POST", f"{store}/archive")

    with pytest.raises(Fault, match=r"^/a cannot be restored: its memory store \w+ was archived since$") as refused:
        take_back(kernel, deleted)

    assert refused.value.code == "conflict"
    assert paths(rest, store) == []


def test_what_was_deleted_from_an_archived_store_comes_back(
    rest: RestClient, store: str, kernel: Kernel, clock: Clock
) -> None:
    rest("POST", f"{store}/memories", {"path": "/a", "content": ""})
    rest("POST", f"{store}/archive")
    clock.move(seconds=1)
    rest("DELETE", store)

    take_back(kernel, last_call(kernel))

    assert paths(rest, store) == ["/a"]
    assert rest("GET", store)["archived_at"] is not None

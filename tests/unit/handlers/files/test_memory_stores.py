"""Stores of memories: their names, metadata and lists, archiving, and deletion with all that is in them."""

from typing import Any

import pytest

from kernel.operations import consistency, undo
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit, history
from tests.conftest import Call, Clock, Rows, everything
from tests.unit.rest_client import RestClient

MANY = {f"k{number}": "v" for number in range(16)}


def invalid(message: str) -> tuple[int, dict[str, Any]]:
    return 400, {"type": "invalid_request_error", "message": message}


def rows_of(kernel: Kernel) -> Rows:
    """The rows of the dialect."""
    return {name: sorted(rows) for name, rows in everything(kernel).items() if name.startswith("files_")}


def test_store_has_what_it_was_given(rest: RestClient, clock: Clock) -> None:
    made = rest("POST", "", {"name": "Größe 🙂", "metadata": {"a": ""}})

    assert made == {
        "type": "memory_store",
        "id": "memstore_1",
        "name": "Größe 🙂",
        "description": "",
        "metadata": {"a": ""},
        "created_at": clock.now,
        "updated_at": clock.now,
        "archived_at": None,
    }
    assert next(iter(made)) == "type"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {},
            "Invalid arguments: missing required field `name`; expects string (Name of the store, need not be unique)",
        ),
        ({"name": ""}, "Invalid arguments: expected `string` of length >= 1 - at `name`"),
        ({"name": "x" * 256}, "Invalid arguments: expected `string` of length <= 255 - at `name`"),
        ({"name": "a\u0007"}, "name: has control characters"),
        (
            {"name": "a", "description": "x" * 1025},
            "Invalid arguments: expected `string` of length <= 1024 - at `description`",
        ),
        (
            {"name": "a", "metadata": {**MANY, "more": "v"}},
            "Invalid arguments: expected `object` of length <= 16 - at `metadata`",
        ),
        (
            {"name": "a", "other": 1},
            "Invalid arguments: contains unknown field `other`; create_memory_store takes name, description, metadata",
        ),
        (["a"], "The body is not a JSON object"),
    ],
)
def test_store_that_is_none_is_refused(rest: RestClient, kernel: Kernel, body: Any, message: str) -> None:
    before = everything(kernel)
    assert rest("POST", "", body) == invalid(message)
    assert everything(kernel) == before


def test_update_changes_what_it_names(rest: RestClient, clock: Clock) -> None:
    made = rest("POST", "", {"name": "a", "description": "d", "metadata": {"x": "1", "y": "2"}})
    path = f"/{made['id']}"
    clock.move(seconds=1)

    assert rest("POST", path, {}) == made
    assert rest("POST", path, {"name": None, "description": None, "metadata": None}) == made
    changed = rest("POST", path, {"description": "", "metadata": {"x": None, "z": "3", "none": None}})
    assert changed == {**made, "description": "", "metadata": {"y": "2", "z": "3"}, "updated_at": clock.now}
    assert rest("GET", path) == changed
    assert rest("POST", path, {"metadata": MANY}) == invalid("metadata: would have 18 pairs, more than 16")


def test_memories_do_not_move_the_time_of_their_store(rest: RestClient, clock: Clock) -> None:
    made = rest("POST", "", {"name": "a"})
    clock.move(seconds=1)
    rest("POST", f"/{made['id']}/memories", {"path": "/a", "content": ""})
    assert rest("GET", f"/{made['id']}") == made


def test_list_has_the_newest_first_within_bounds_of_time(rest: RestClient, clock: Clock) -> None:
    rest("DELETE", "/memstore_memories")
    times = [clock.move(hours=1) for _ in "abcd" if rest("POST", "", {"name": "x"})]
    made = [f"memstore_{number}" for number in range(1, 5)]
    rest("POST", f"/{made[3]}/archive")

    def listed(**query: Any) -> list[str]:
        return [one["id"] for one in rest("GET", "", **query)["data"]]

    assert listed() == made[2::-1]
    assert listed(include_archived="true") == made[::-1]
    assert listed(**{"created_at[gte]": times[0], "created_at[lte]": times[1]}) == made[2:0:-1]
    assert listed(**{"created_at[gte]": "2026-01-02T05:04:05.678+00:00"}) == [made[2]]
    assert rest("GET", "", **{"created_at[lte]": "noon"}) == invalid(
        "created_at[lte]: 'noon' is not an ISO 8601 time, such as 2026-01-31T08:00:00Z"
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"limit": 0}, "Invalid arguments: expected `integer` >= 1 - at `limit`"),
        ({"limit": 101}, "Invalid arguments: expected `integer` <= 100 - at `limit`"),
        (
            {"limit": "x"},
            "Invalid arguments: expected `integer`, got `string` - at `limit`; "
            "expects integer (Items of a page; with view=full at most 20)",
        ),
        (
            {"include_archived": "perhaps"},
            "Invalid arguments: expected `boolean`, got `string` - at `include_archived`",
        ),
        ({"page": ""}, "page: is not the next_page of a page before"),
        ({"page": "é"}, "page: is not the next_page of a page before"),
        ({"page": "ImEi"}, "page: is not the next_page of a page before"),
        ({"page": "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"}, "page: is not the next_page of a page before"),
    ],
)
def test_list_refuses_what_is_no_page(rest: RestClient, query: Any, message: str) -> None:
    assert rest("GET", "", **query) == invalid(message)


def test_page_ends_where_the_next_begins(rest: RestClient) -> None:
    rest("DELETE", "/memstore_memories")
    made = [rest("POST", "", {"name": str(number)})["id"] for number in range(4)]
    first = rest("GET", "", limit=2)
    new = rest("POST", "", {"name": "meanwhile"})["id"]
    second = rest("GET", "", limit=2, page=first["next_page"])
    assert [one["id"] for one in first["data"] + second["data"]] == made[::-1]
    assert second["next_page"] is None
    assert rest("GET", "", limit=1)["data"][0]["id"] == new


def test_the_store_of_the_tool_is_one_of_them(rest: RestClient, call: Call) -> None:
    (store,) = rest("GET", "")["data"]
    call("memory", command="create", path="/memories/a/b.txt", file_text="by the tool")
    assert rest("GET", "")["data"] == [store]
    assert (store["id"], store["name"]) == ("memstore_memories", "memories")
    made = rest("POST", f"/{store['id']}/memories", {"path": "/a/c.txt", "content": "over REST"})
    assert made["path"] == "/a/c.txt"
    assert call("memory", command="view", path="/memories/a/c.txt").body.endswith(b"1\tover REST")

    rest("POST", f"/{store['id']}/archive")
    said = "Error: The memory store memstore_memories is archived: it can be read and deleted, not changed"
    for command in (
        {"command": "create", "path": "/memories/x", "file_text": ""},
        {"command": "insert", "path": "/memories/a/c.txt", "insert_line": 0, "insert_text": "x"},
        {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
    ):
        assert call("memory", **command).body.decode() == said
    assert call("memory", command="delete", path="/memories/a/b.txt").fault is None

    rest("DELETE", f"/{store['id']}")
    assert call("memory", command="view", path="/memories").body.endswith(b"0B\t/memories")
    assert call("memory", command="create", path="/memories/x", file_text="").fault is None


@pytest.mark.slow
def test_deleted_store_leaves_nothing_but_history_and_can_be_undone(
    rest: RestClient, store: str, kernel: Kernel, call: Call
) -> None:
    made = rest("POST", f"{store}/memories", {"path": "/kiwi", "content": "The kiwi cannot fly"})
    rest("POST", f"{store}/memories/{made['id']}", {"content": "The kiwi walks"})
    other = rest("POST", "", {"name": "other"})["id"]
    kept = rest("POST", f"/{other}/memories", {"path": "/kiwi", "content": "Another kiwi"})
    before = rows_of(kernel)

    assert rest("DELETE", store) == {"type": "memory_store_deleted", "id": store[1:]}

    rows = everything(kernel)
    assert [len(rows[f"files_{name}"]) for name in ("store", "memory", "version")] == [2, 1, 1]
    found = call("recall", query="kiwi").structured or b""
    assert kept["id"].encode() in found
    assert made["id"].encode() not in found
    for path in ("", "/memories", "/memory_versions", f"/memories/{made['id']}"):
        assert rest("GET", f"{store}{path}")[0] == 404
    events = kernel.store.read_sync(lambda tx: history.read(tx, f"files:{store[1:]}", made["id"]))
    assert [event.operation for event in events] == ["created", "modified", "deleted"]

    (entry, *_) = kernel.store.read_sync(lambda tx: audit.read(tx, 100))
    assert (entry.dialect, entry.tool) == ("files", "delete_memory_store")
    undo.undo(kernel.config.file, kernel.store.context, app.DIALECTS, entry.id)
    assert rows_of(kernel) == before
    assert consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS) == []


@pytest.mark.slow
def test_a_large_store_is_deleted_whole(rest: RestClient, store: str, kernel: Kernel) -> None:
    for number in range(45):
        rest("POST", f"{store}/memories", {"path": f"/d/{number}", "content": "x" * 102_400})
    rest("DELETE", store)
    assert everything(kernel)["files_memory"] == []
    assert consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS) == []

"""Both official SDKs of the vendor work with /v1/memory_stores as they do with the vendor's own address.

`make originals` installs them; ROUNDS lengthens the race of two writers.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from kernel.security import api_keys
from tests.reliability.server_process import Server, serving

pytestmark = [pytest.mark.originals, pytest.mark.xdist_group("originals")]
CLIENTS = {name: os.environ.get(f"CLIENT_STORES_{name.upper()}", "") for name in ("python", "node")}
ROUNDS = int(os.environ.get("ROUNDS", "20"))
NO_TIME = "TIME"


class Client:
    """An SDK in a process of its own."""

    def __init__(self, name: str, address: str, key: str) -> None:
        self._process = subprocess.Popen(
            [*shlex.split(CLIENTS[name]), address, key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __call__(self, method: str, *positional: str, **named: Any) -> Any:
        self.send(method, *positional, **named)
        return self.receive()

    def send(self, method: str, *positional: str, **named: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([method, positional, named]) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=60)


class House:
    """A server that requires a key, the id of the key, and a client of each SDK."""

    def __init__(self, server: Server, key_id: str, clients: dict[str, Client]) -> None:
        self.server, self.key_id, self.clients = server, key_id, clients


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    if not all(CLIENTS.values()):
        pytest.skip("CLIENT_STORES_PYTHON and CLIENT_STORES_NODE name no commands; `make originals` sets them")
    data = tmp_path_factory.mktemp("stores") / "data"
    data.mkdir()
    made, key = api_keys.create(data, api_keys.Key("", "write", "2026-01-01T00:00:00.000Z"))
    with serving(data, QUIPU_MODEL="none", QUIPU_LIMIT_RATE="0") as server, ExitStack() as stack:
        address = f"http://127.0.0.1:{server.port}"
        clients = {name: stack.enter_context(closing(Client(name, address, key))) for name in CLIENTS}
        yield House(server, made.id, clients)


@pytest.fixture(params=CLIENTS)
def client(house: House, request: pytest.FixtureRequest) -> Client:
    return house.clients[request.param]


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def timeless(found: dict[str, Any]) -> dict[str, Any]:
    """An answer with a word in place of its times."""
    return {name: NO_TIME if name.endswith("_at") and value else value for name, value in found.items()}


def memory(found: Any, path: str, text: str, *, whole: bool) -> dict[str, Any]:
    """The object that a memory has to be, with the ids of the hits."""
    return {
        "type": "memory",
        "id": found["id"],
        "memory_store_id": found["memory_store_id"],
        "memory_version_id": found["memory_version_id"],
        "path": path,
        "content": text if whole else None,
        "content_sha256": sha(text),
        "content_size_bytes": len(text.encode()),
        "created_at": NO_TIME,
        "updated_at": NO_TIME,
    }


def flat(pages: list[list[Any]]) -> list[Any]:
    return [item for page in pages for item in page]


def test_a_store_is_made_changed_archived_and_deleted(client: Client) -> None:
    made = client("create", name="Notes", description="Of work", metadata={"a": "1", "b": "2"})
    wanted = {
        "type": "memory_store",
        "id": made["id"],
        "name": "Notes",
        "description": "Of work",
        "metadata": {"a": "1", "b": "2"},
        "created_at": NO_TIME,
        "updated_at": NO_TIME,
        "archived_at": None,
    }
    assert re.fullmatch(r"memstore_[0-9a-z]{22}", made["id"])
    assert timeless(made) == wanted
    assert client("retrieve", made["id"]) == made

    changed = client("update", made["id"], name="Work", metadata={"a": None, "c": "3"})
    wanted |= {"name": "Work", "metadata": {"b": "2", "c": "3"}}
    assert timeless(changed) == wanted
    assert changed["updated_at"] > made["updated_at"]

    kept = client("memories.create", made["id"], path="/kept", content="x")
    archived = client("archive", made["id"])
    assert timeless(archived) == {**wanted, "archived_at": NO_TIME}
    assert client("archive", made["id"]) == archived
    assert archived not in flat(client("list"))
    assert archived in flat(client("list", include_archived=True))
    refused = client("memories.create", made["id"], path="/new", content="x")
    assert (refused["status"], refused["type"]) == (400, "invalid_request_error")
    assert client("update", made["id"], name="New")["status"] == 400
    assert client("memories.update", kept["id"], memory_store_id=made["id"], content="y")["status"] == 400
    assert client("memories.delete", kept["id"], memory_store_id=made["id"]) == {
        "type": "memory_deleted",
        "id": kept["id"],
    }

    assert client("delete", made["id"]) == {"type": "memory_store_deleted", "id": made["id"]}
    gone = client("retrieve", made["id"])
    assert (gone["status"], gone["type"]) == (404, "not_found_error")
    assert gone["id"].startswith("req_")
    assert gone["id in the body"] == gone["id"]


def test_a_memory_is_made_read_changed_renamed_and_deleted(client: Client) -> None:
    store = client("create", name="s")["id"]
    made = client("memories.create", store, path="/größe/🙂.md", content="One\r\n\ttwo")
    assert timeless(made) == memory(made, "/größe/🙂.md", "One\r\n\ttwo", whole=False)
    read = client("memories.retrieve", made["id"], memory_store_id=store)
    assert timeless(read) == memory(made, "/größe/🙂.md", "One\r\n\ttwo", whole=True)
    assert client("memories.retrieve", made["id"], memory_store_id=store, view="basic") == made

    changed = client("memories.update", made["id"], memory_store_id=store, content="", view="full")
    assert timeless(changed) == memory(changed, "/größe/🙂.md", "", whole=True)
    assert changed["memory_version_id"] != made["memory_version_id"]
    moved = client("memories.update", made["id"], memory_store_id=store, path="/größe/🙂.md/below")
    assert timeless(moved) == memory(moved, "/größe/🙂.md/below", "", whole=False)
    assert client("memories.update", made["id"], memory_store_id=store, content="") == moved

    stale = client("memories.delete", made["id"], memory_store_id=store, expected_content_sha256=sha("One"))
    assert (stale["status"], stale["type"]) == (409, "memory_precondition_failed_error")
    gone = client("memories.delete", made["id"], memory_store_id=store, expected_content_sha256=sha(""))
    assert gone == {"type": "memory_deleted", "id": made["id"]}
    assert client("memories.retrieve", made["id"], memory_store_id=store)["status"] == 404


@pytest.mark.parametrize("path", ["/a/b", "/a", "/a/b/c"], ids=["there", "above", "below"])
def test_a_path_that_is_taken_is_a_conflict_that_names_the_memory(client: Client, path: str) -> None:
    store = client("create", name="s")["id"]
    there = client("memories.create", store, path="/a/b", content="")
    other = client("memories.create", store, path="/other", content="")

    for refused in (
        client("memories.create", store, path=path, content=""),
        client("memories.update", other["id"], memory_store_id=store, path=path),
    ):
        assert (refused["status"], refused["type"]) == (409, "memory_path_conflict_error")
        assert refused["error"] == {
            "type": "memory_path_conflict_error",
            "message": f"path: the memory {there['id']} is at /a/b",
            "conflicting_memory_id": there["id"],
            "conflicting_path": "/a/b",
        }


def test_an_update_needs_the_content_that_it_expects(client: Client) -> None:
    store = client("create", name="s")["id"]
    made = client("memories.create", store, path="/a", content="one")

    def update(expected: str, text: str) -> Any:
        condition = {"type": "content_sha256", "content_sha256": expected}
        return client("memories.update", made["id"], memory_store_id=store, content=text, precondition=condition)

    assert update(made["content_sha256"], "two")["content_sha256"] == sha("two")
    refused = update(made["content_sha256"], "three")
    assert (refused["status"], refused["type"]) == (409, "memory_precondition_failed_error")
    assert "two" not in json.dumps(refused)
    assert client("memories.retrieve", made["id"], memory_store_id=store)["content"] == "two"


def test_lists_come_page_by_page(client: Client) -> None:
    names = [f"paged {number}" for number in range(5)]
    stores = [client("create", name=name) for name in names]
    pages = client("list", limit=2, **{"created_at[gte]": stores[0]["created_at"]})
    assert [item["name"] for item in flat(pages)] == names[::-1]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert flat(client("list", **{"created_at[lte]": "2001-01-01T00:00:00Z"})) == []

    store = stores[0]["id"]
    for path in ("/b", "/a/x", "/a/y/z", "/a-b", "/a.txt", "/c/d/e/f", "/c/d/g"):
        client("memories.create", store, path=path, content=path)
    pages = client("memories.list", store, limit=3)
    assert [[item["path"] for item in page] for page in pages] == [
        ["/a-b", "/a.txt", "/a/x"],
        ["/a/y/z", "/b", "/c/d/e/f"],
        ["/c/d/g"],
    ]
    assert {item["content"] for item in flat(pages)} == {None}
    pages = client("memories.list", store, depth=1, limit=2, view="full")
    assert [[(item["type"], item["path"], item.get("content")) for item in page] for page in pages] == [
        [("memory", "/a-b", "/a-b"), ("memory", "/a.txt", "/a.txt")],
        [("memory_prefix", "/a/", None), ("memory", "/b", "/b")],
        [("memory_prefix", "/c/", None)],
    ]
    (below,) = client("memories.list", store, depth=1, path_prefix="/a/")
    assert [item["path"] for item in below] == ["/a/x", "/a/y/"]


def test_versions_tell_what_was_done_and_by_which_key(client: Client, house: House) -> None:
    store = client("create", name="s")["id"]
    made = client("memories.create", store, path="/a", content="one")
    changed = client("memories.update", made["id"], memory_store_id=store, content="two")
    client("memories.delete", made["id"], memory_store_id=store)
    client("memories.create", store, path="/other", content="")

    found = flat(client("memory_versions.list", store, memory_id=made["id"], limit=1))
    by = {"type": "api_actor", "api_key_id": house.key_id}
    shared = {"type": "memory_version", "memory_id": made["id"], "memory_store_id": store, "created_at": NO_TIME}
    shared |= {"created_by": by, "redacted_at": None, "redacted_by": None, "path": "/a", "content": None}
    nothing = {"content_sha256": None, "content_size_bytes": None}
    assert [timeless(one) for one in found] == [
        {**shared, "id": found[0]["id"], "operation": "deleted", **nothing},
        {
            **shared,
            "id": changed["memory_version_id"],
            "operation": "modified",
            "content_sha256": sha("two"),
            "content_size_bytes": 3,
        },
        {
            **shared,
            "id": made["memory_version_id"],
            "operation": "created",
            "content_sha256": sha("one"),
            "content_size_bytes": 3,
        },
    ]
    whole = client("memory_versions.retrieve", made["memory_version_id"], memory_store_id=store)
    assert whole == {**found[2], "content": "one"}

    listed = [
        len(flat(client("memory_versions.list", store, **given)))
        for given in (
            {},
            {"operation": "created"},
            {"api_key_id": house.key_id},
            {"api_key_id": "other"},
            {"session_id": "s"},
            {"service_account_id": "s"},
            {"created_at[gte]": "2100-01-01T00:00:00Z"},
        )
    ]
    assert listed == [4, 2, 4, 0, 0, 0, 0]


def test_a_redacted_version_keeps_neither_path_nor_content(client: Client, house: House) -> None:
    store = client("create", name="s")["id"]
    made = client("memories.create", store, path="/secret", content="hunter2")
    version = made["memory_version_id"]
    present = client("memory_versions.redact", version, memory_store_id=store)
    assert (present["status"], present["type"]) == (400, "invalid_request_error")
    client("memories.update", made["id"], memory_store_id=store, content="gone")

    redacted = client("memory_versions.redact", version, memory_store_id=store)

    by = {"type": "api_actor", "api_key_id": house.key_id}
    assert timeless(redacted) == {
        "type": "memory_version",
        "id": version,
        "memory_id": made["id"],
        "memory_store_id": store,
        "operation": "created",
        "path": None,
        "content": None,
        "content_sha256": None,
        "content_size_bytes": None,
        "created_at": NO_TIME,
        "created_by": by,
        "redacted_at": NO_TIME,
        "redacted_by": by,
    }
    assert client("memory_versions.retrieve", version, memory_store_id=store) == redacted
    assert client("memory_versions.redact", version, memory_store_id=store) == redacted


def test_of_two_writers_with_the_same_precondition_exactly_one_wins(house: House) -> None:
    first, second = house.clients.values()
    store = first("create", name="race")["id"]
    made = first("memories.create", store, path="/counter", content="0")
    wins = {0: 0, 1: 0}
    for number in range(ROUNDS):
        condition = {"type": "content_sha256", "content_sha256": made["content_sha256"]}
        for one, client in enumerate((first, second)):
            named = {"memory_store_id": store, "content": f"{number} by {one}", "precondition": condition}
            client.send("memories.update", made["id"], **named)
        answers = [first.receive(), second.receive()]
        (winner,) = [one for one, answer in enumerate(answers) if answer["type"] == "memory"]
        assert answers[1 - winner]["type"] == "memory_precondition_failed_error"
        assert answers[winner]["content_sha256"] == sha(f"{number} by {winner}")
        wins[winner] += 1
        made = first("memories.retrieve", made["id"], memory_store_id=store)
        assert made["content"] == f"{number} by {winner}"
    assert sum(wins.values()) == ROUNDS
    versions = flat(first("memory_versions.list", store, memory_id=made["id"], limit=100))
    assert len(versions) == ROUNDS + 1

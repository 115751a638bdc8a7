"""Versions of memories: every change makes one, they stay after a deletion, and a redacted one is gone for good."""

import asyncio
from typing import Any

import pytest

from kernel.calls.dispatch import catch_faults
from kernel.operations.undo import undo
from kernel.security.permissions import Caller, Permission, grant
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit, history
from tests.conftest import Call, everything
from tests.unit.rest_client import RestClient

SECRET = "hunter2 is the password"
KEYED = Caller("k1/claude", grant(Permission.write, frozenset(), True), key="k1")


def changed(rest: RestClient, store: str) -> Any:
    """A memory whose first version has a secret, and its second not."""
    made = rest("POST", f"{store}/memories", {"path": "/a", "content": SECRET})
    rest("POST", f"{store}/memories/{made['id']}", {"content": "none"})
    return made


def test_the_tool_makes_versions_too(rest: RestClient, call: Call) -> None:
    call("memory", command="create", path="/memories/d/a", file_text="one")
    call("memory", command="str_replace", path="/memories/d/a", old_str="one", new_str="two")
    call("memory", command="rename", old_path="/memories/d", new_path="/memories/e")
    call("memory", command="delete", path="/memories/e")

    found = rest("GET", "/memstore_memories/memory_versions", view="full")["data"]

    assert [(one["operation"], one["path"], one["content"], one["created_by"]) for one in found] == [
        ("deleted", "/e/a", None, None),
        ("modified", "/e/a", "two", None),
        ("modified", "/d/a", "two", None),
        ("created", "/d/a", "one", None),
    ]
    assert len({one["memory_id"] for one in found}) == 1


def test_version_names_the_key_of_the_tool(rest: RestClient, kernel: Kernel) -> None:
    arguments = b'{"command": "create", "path": "/memories/a", "file_text": ""}'
    asyncio.run(kernel.dispatch.call(kernel.dispatch.tools["memory"], arguments, KEYED))
    (found,) = rest("GET", "/memstore_memories/memory_versions", api_key_id="k1")["data"]
    assert found["created_by"] == {"type": "api_actor", "api_key_id": "k1"}


def test_redacted_text_is_nowhere_in_the_store(rest: RestClient, store: str, kernel: Kernel) -> None:
    made = changed(rest, store)
    version = made["memory_version_id"]
    assert SECRET in repr(everything(kernel))

    redacted = rest("POST", f"{store}/memory_versions/{version}/redact")

    nothing = {"path": None, "content": None, "content_sha256": None, "content_size_bytes": None}
    assert {name: redacted[name] for name in nothing} == nothing
    assert redacted["redacted_at"] is not None
    rows = everything(kernel)
    assert SECRET not in repr(rows)
    assert SECRET.encode() not in b"".join(
        value for row in rows["undo_part"] for value in row if isinstance(value, bytes)
    )
    assert rest("GET", f"{store}/memory_versions/{version}") == redacted
    assert rest("GET", f"{store}/memories/{made['id']}")["content"] == "none"


def test_text_that_a_memory_has_again_is_redacted_with_its_last_version(
    rest: RestClient, store: str, kernel: Kernel
) -> None:
    made = changed(rest, store)
    again = rest("POST", f"{store}/memories/{made['id']}", {"content": SECRET})
    rest("POST", f"{store}/memory_versions/{made['memory_version_id']}/redact")

    def newest() -> str | None:
        return kernel.store.read_sync(lambda tx: history.latest(tx, f"files:{store[1:]}", made["id"]))

    assert newest() == f"/a\n{SECRET}"
    rest("POST", f"{store}/memories/{made['id']}", {"content": "none"})
    rest("POST", f"{store}/memory_versions/{again['memory_version_id']}/redact")
    assert newest() == "/a\nnone"
    assert SECRET not in repr(everything(kernel))


def test_no_undo_brings_a_redacted_text_back(rest: RestClient, store: str, kernel: Kernel) -> None:
    made = changed(rest, store)
    other = rest("POST", f"{store}/memories", {"path": "/other", "content": "x"})
    rest("POST", f"{store}/memories/{other['id']}", {"content": "y"})
    rest("POST", f"{store}/memory_versions/{made['memory_version_id']}/redact")

    entries = kernel.store.read_sync(lambda tx: audit.read(tx, 100))

    assert [(entry.tool, entry.undoable) for entry in entries] == [
        ("redact_memory_version", False),
        ("update_stored_memory", True),
        ("create_stored_memory", False),
        ("update_stored_memory", False),
        ("create_stored_memory", False),
        ("create_memory_store", False),
    ]
    undo(kernel.config.file, kernel.store.context, app.DIALECTS, entries[1].id)
    again: Any = catch_faults(undo, kernel.config.file, kernel.store.context, app.DIALECTS, entries[3].id)
    assert again.code == "conflict"


def test_the_present_version_is_not_redacted_until_the_memory_is_changed_or_deleted(
    rest: RestClient, store: str
) -> None:
    made = rest("POST", f"{store}/memories", {"path": "/a", "content": SECRET})
    version = made["memory_version_id"]
    said = f"The version {version} is the present one of its memory: change or delete that first"
    refused = rest("POST", f"{store}/memory_versions/{version}/redact")
    assert refused == (400, {"type": "invalid_request_error", "message": said})
    rest("DELETE", f"{store}/memories/{made['id']}")
    assert rest("POST", f"{store}/memory_versions/{version}/redact")["content"] is None


def test_deletion_can_be_redacted_and_an_archived_store_too(rest: RestClient, store: str) -> None:
    made = changed(rest, store)
    rest("DELETE", f"{store}/memories/{made['id']}")
    rest("POST", f"{store}/archive")
    found = rest("GET", f"{store}/memory_versions")["data"]
    redacted = [rest("POST", f"{store}/memory_versions/{one['id']}/redact") for one in found]
    assert [(one["operation"], one["path"]) for one in redacted] == [
        ("deleted", None),
        ("modified", None),
        ("created", None),
    ]


@pytest.mark.parametrize("end", ["", "/redact"])
def test_version_is_not_in_another_store(rest: RestClient, store: str, end: str) -> None:
    made = changed(rest, store)
    other = f"/{rest('POST', '', {'name': 'other'})['id']}"
    path = f"{other}/memory_versions/{made['memory_version_id']}{end}"
    assert rest("POST" if end else "GET", path)[0] == 404


@pytest.mark.slow
def test_pages_of_whole_versions_have_at_most_twenty(rest: RestClient, store: str) -> None:
    made = rest("POST", f"{store}/memories", {"path": "/a", "content": "0"})
    for number in range(1, 23):
        rest("POST", f"{store}/memories/{made['id']}", {"content": str(number)})
    first = rest("GET", f"{store}/memory_versions", limit=100, view="full")
    second = rest("GET", f"{store}/memory_versions", limit=100, view="full", page=first["next_page"])
    assert [one["content"] for one in first["data"] + second["data"]] == [str(number) for number in range(22, -1, -1)]
    assert len(rest("GET", f"{store}/memory_versions", limit=100)["data"]) == 23

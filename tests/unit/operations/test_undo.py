"""Undo in a running server: it looks at the memories of the call alone, and leaves the index as the command does."""

import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.calls.dispatch import catch_faults
from kernel.core.errors import Fault
from kernel.operations import consistency
from kernel.operations.undo import undo
from kernel.search import index
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import audit, history
from tests.conftest import Call
from tests.reliability.write_scenario import BRAIN, FILES, GRAPH, PATHS, SCOPES, SESSIONS, STORY, Kept, step
from tests.support.operations_undo import last_call, memories, online
from tests.unit.handlers.sessions.calls import opened


def offline(kernel: Kernel, number: int) -> audit.Entry:
    return undo(kernel.config.file, kernel.store.context, app.DIALECTS, number)


def newest_call(kernel: Kernel) -> int:
    return max((entry.id for entry in kernel.store.read_sync(lambda tx: audit.read(tx, 1))), default=0)


def findings(kernel: Kernel) -> list[consistency.Finding]:
    return consistency.check(kernel.config.file, kernel.store.context, app.DIALECTS)


def indexed(kernel: Kernel) -> set[str]:
    """The keys of all documents."""
    docs = kernel.store.read_sync(lambda tx: index.documents(tx, [*range(1, index.last_doc_id(tx) + 1)]))
    return {document.key for document in docs.values()}


def call_in(kernel: Kernel, call: Call, dialect: str) -> int:
    """Changes and deletes memories of a dialect; the number of the last call, which can be undone."""
    for tool, arguments in CALLS[dialect]:
        reply = call(tool, **arguments)
        assert reply.fault is None, reply
    return last_call(kernel).id


CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "paths": [
        ("add_memory", {"path": "car", "content": "red"}),
        ("add_memory", {"path": "bus", "content": "blue"}),
        ("clear_memory", {}),
    ],
    "graph": [
        (
            "create_entities",
            {"entities": [{"name": name, "entityType": "t", "observations": ["o", "p"]} for name in ("a", "b")]},
        ),
        ("create_relations", {"relations": [{"from": "a", "to": "b", "relationType": "r"}]}),
        ("delete_entities", {"entityNames": ["a"]}),
    ],
    "sessions": [
        ("upsert_entity", {"name": "Stated", "observations_json": '["seen"]'}),
        ("remember", {"content": "See parse_config in app.py", "session_id": "a"}),
        ("upsert_entity", {"name": "Stated", "observations_json": '["again"]', "memory_id": 1}),
        ("add_relation", {"source": "Left", "target": "Right", "relation_type": "uses", "memory_id": 1}),
        ("maintenance", {"action": "purge_session", "session_id": "a", "confirm": True}),
    ],
    "files": [
        ("memory", {"command": "create", "path": "/memories/car/a.txt", "file_text": "red"}),
        ("memory", {"command": "create", "path": "/memories/car/b.txt", "file_text": "blue"}),
        ("memory", {"command": "rename", "old_path": "/memories/car", "new_path": "/memories/bus"}),
    ],
}


@pytest.fixture
def kernel(tmp_path: Path, migrated: Path) -> Iterator[Kernel]:
    """A kernel with the graph of `sessions`."""
    with opened(shutil.copytree(migrated, tmp_path / "data"), ENABLE_GRAPH="1") as (running, _):
        yield running


@pytest.mark.parametrize("dialect", CALLS)
def test_undo_in_the_server_leaves_the_index_as_the_command_does(kernel: Kernel, call: Call, dialect: str) -> None:
    number = call_in(kernel, call, dialect)
    online(kernel, number)
    assert findings(kernel) == []


def test_undo_in_the_server_indexes_entities_that_no_memory_tells_of(kernel: Kernel, call: Call) -> None:
    call("upsert_entity", name="Stated", observations_json='["seen"]')
    call("remember", content="A memory", session_id="a")
    assert call("maintenance", action="purge_all", confirm=True).fault is None
    assert indexed(kernel) == set()
    online(kernel, last_call(kernel).id)
    assert findings(kernel) == []


def test_undo_in_the_server_indexes_a_restored_file(kernel: Kernel, call: Call) -> None:
    assert call("memory_remember", title="Car", content="It is red.", memoryType="context", tags=["x"]).fault is None
    files = [str(file) for file in (kernel.config.home / "notes").rglob("*.md")]
    before = indexed(kernel)
    assert call("memory_forget", filePaths=files).fault is None
    online(kernel, last_call(kernel).id)
    assert (findings(kernel), indexed(kernel)) == ([], before)


@pytest.mark.parametrize("dialect", ["paths", "notes"])
def test_changes_undone_one_after_the_other_leave_each_text_that_was_there(
    kernel: Kernel, call: Call, dialect: str
) -> None:
    def change(colour: str) -> None:
        text = f"The car is {colour}"
        if dialect == "paths":
            reply = call("add_memory" if colour == "red" else "replace_memory", path="car", content=text)
        else:
            file = next(map(str, (kernel.config.home / "notes").rglob("*.md")), None)
            reply = call("memory_remember", title="Car", memoryType="context", content=text, filePath=file)
        assert reply.fault is None, reply

    for colour in ("red", "green", "blue"):
        change(colour)
    texts = list[str]()
    for entry in kernel.store.read_sync(lambda tx: audit.read(tx, 2)):
        online(kernel, entry.id)
        (document,) = kernel.store.read_sync(
            lambda tx: index.documents(tx, [*range(1, index.last_doc_id(tx) + 1)])
        ).values()
        texts.append(document.text.split()[-1])
    events = kernel.store.read_sync(lambda tx: history.read(tx, document.space, document.key))
    undone = [(str(event.before).split()[-1], str(event.after).split()[-1]) for event in events[-2:]]
    assert (texts, undone, findings(kernel)) == (["green", "red"], [("blue", "green"), ("green", "red")], [])


def test_undo_in_the_server_reads_no_memory_that_the_call_did_not_touch(kernel: Kernel, call: Call) -> None:
    for path in ("car", "bus"):
        call("add_memory", path=path, content="red")
    call("drop_memory", path="car")
    kernel.store.write_sync(lambda tx: index.drop(tx, "paths", "bus"))
    online(kernel, 3)
    assert indexed(kernel) == {"car"}
    call("drop_memory", path="car")
    offline(kernel, last_call(kernel).id)
    assert indexed(kernel) == {"car", "bus"}


def test_undo_compares_the_whole_dialect_where_not_all_that_the_call_touched_is_known(
    kernel: Kernel, call: Call
) -> None:
    number = call_in(kernel, call, "paths")
    with closing(apsw.Connection(str(kernel.config.file))) as db:
        db.execute("UPDATE undo_part SET targets = json_array(json_extract(targets, '$[0]'))")
    online(kernel, number)
    assert findings(kernel) == []


@pytest.mark.slow
def test_every_destructive_call_undone_in_the_server_leaves_index_and_memories_as_before(
    kernel: Kernel, call: Call
) -> None:
    kept, undone = Kept(), set[str]()
    for one in STORY:
        before, newest = memories(kernel), newest_call(kernel)
        reply = call(one.tool, **kept.arguments(one))
        assert reply.fault is None, one
        last = last_call(kernel)
        if last.undoable and last.id > newest:
            again = memories(kernel)
            online(kernel, last.id)
            assert (one.tool, memories(kernel), findings(kernel)) == (one.tool, before, [])
            undone.add(one.tool)
            if again != before:
                reply = call(one.tool, **kept.arguments(one))
        kept.take(one, reply)
    assert len(undone) > 20


NOTES = [
    step("memory_remember", title="Tea", content="Green tea", memoryType="context", tags=["x"]),
    step("memory_remember", title="Tea", content="Black tea", memoryType="context", tags=["x"]),
    step("memory_sync"),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_check_finds_nothing_after_any_undo_among_any_calls(kernel: Kernel, call: Call, seed: int) -> None:
    chance, kept, undone = random.Random(seed), Kept(), 0
    stories = [cycle(story) for story in (PATHS, SCOPES, BRAIN, SESSIONS, GRAPH, FILES, NOTES)]
    for _ in range(150):
        one = next(chance.choice(stories))
        if kept.has(one):
            reply = call(one.tool, **kept.arguments(one))
            if reply.fault is None:
                kept.take(one, reply)
        if chance.random() < 0.3:
            known = [entry.id for entry in kernel.store.read_sync(lambda tx: audit.read(tx, 20)) if entry.undoable]
            answer = catch_faults(online, kernel, chance.choice(known)) if known else None
            assert findings(kernel) == []
            assert not isinstance(answer, Fault) or answer.code == "conflict"
            undone += isinstance(answer, audit.Entry)
    assert undone > 10

"""An export of everything: into an empty store it brings back the same file, and the store is sound and answers alike.

There are 400 memories, or as many as `ROUND_TRIP` says.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.calls.dispatch import Dispatch
from kernel.core.errors import Fault
from kernel.operations import portable_import
from kernel.server import app
from kernel.store import long_work
from tests.imports.harness import Shell

SIZE = int(os.environ.get("ROUND_TRIP", "400"))
Call = Callable[..., Any]
Act = Callable[[Call, int], None]


def text(number: int) -> str:
    """A text with letters of several scripts, line ends and quotes."""
    return f'memory {number}: "quoted", tab\t, line\nend, \u65e5\u672c\u8a9e, \U0001f332, {number % 97} \\n'


def paths(call: Call, number: int) -> None:
    call("add_memory", path=f"round/{number}", content=text(number))
    if number % 5 == 0:
        call("replace_memory", path=f"round/{number}", content=f"second {text(number)}")
    if number % 7 == 0:
        call("drop_memory", path=f"round/{number}")


def scopes(call: Call, number: int) -> None:
    added = call("memory_guideline", action="add", scopeType="global", name=f"rule {number}", content=text(number))
    if number % 3 == 0:
        entry = json.loads(added.body)["guideline"]["id"]
        call("memory_guideline", action="update", id=entry, content=f"better {text(number)}", changeReason="better")
        call("memory_tag", action="attach", entryType="guideline", entryId=entry, tagName=f"tag{number % 10}")
    if number % 50 == 0:
        call("memory_project", action="create", name=f"project {number}")


def brain(call: Call, number: int) -> None:
    saved = json.loads(call("save_memory", db="core", category="fact", content=text(number), tags=["a"]).body)
    kinds = number % 6
    if kinds == 0:
        call("update_memory", db="core", id=saved["id"], content=f"changed {text(number)}")
    elif kinds == 1:
        call("delete_memory", db="core", id=saved["id"])
    elif kinds == 2:
        entity = json.loads(call("create_entity", db="core", name=f"entity {number}", type="concept").body)
        ends = {"source_type": "memory", "source_id": saved["id"], "target_type": "entity", "target_id": entity["id"]}
        call("create_link", db="core", relationship="part_of", **ends)
    elif kinds == 3:
        call("save_note", db="core", title=f"note {number}", content=text(number))
        call("save_resource", db="core", title=f"resource {number}", url=f"https://example.org/{number}")
        call("set_config", key=f"key{number}", value=str(number))


def notes(call: Call, number: int) -> None:
    call("memory_remember", title=f"note {number}", content=text(number), memoryType="context", tags=["x", "y"])


def sessions(call: Call, number: int) -> None:
    session = f"s{number % 11}"
    call("remember", content=f"{text(number)} in kernel/app.py and OpenTelemetry", session_id=session, kind="fact")
    if number % 4 == 0:
        call("upsert_entity", name=f"Thing{number}", entity_type="module", observations_json=json.dumps([text(number)]))
        call("add_relation", source=f"Thing{number}", target="kernel/server/app.py", relation_type="uses")


def graph(call: Call, number: int) -> None:
    entity = {"name": f"node {number}", "entityType": "node", "observations": [text(number), "and more"]}
    call("create_entities", entities=[entity])
    if number % 3 == 0:
        ends = {"from": f"node {number}", "to": f"node {number - 7}", "relationType": "follows"}
        call("create_relations", relations=[ends])
    if number % 8 == 0:
        call("delete_observations", deletions=[{"entityName": f"node {number}", "observations": ["and more"]}])


def files(call: Call, number: int) -> None:
    path = f"/memories/file{number}.txt"
    call("memory", command="create", path=path, file_text=text(number))
    if number % 4 == 0:
        call("memory", command="insert", path=path, insert_line=0, insert_text="first\n")
    if number % 9 == 0:
        call("memory", command="delete", path=path)


ACTS: tuple[Act, ...] = (paths, scopes, brain, notes, sessions, graph, files)


@pytest.fixture
def filled(shell: Shell, caller: Callable[[Dispatch], Call]) -> Shell:
    """A store that every dialect has written to."""
    shell.config = shell.config._replace(durable=False)
    kernel = app.open_kernel(shell.config, app.DIALECTS)
    call = caller(kernel.dispatch)

    def succeed(tool: str, /, **arguments: Any) -> Any:
        reply = call(tool, **arguments)
        assert reply.fault is None, (tool, reply.body)
        return reply

    for number in range(SIZE):
        ACTS[number % len(ACTS)](succeed, number // len(ACTS))
    kernel.store.close()
    return shell


@pytest.mark.parametrize("seconds", [-1.0, 0.05])
def test_everything_comes_back_equal_in_an_empty_store(
    filled: Shell, other: Shell, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "SLICE_SECONDS", seconds)  # the first has a slice for each step
    first = filled.export()
    lines = [json.loads(line) for line in first.read_bytes().splitlines()]
    spaces = {line["doc"]["space"].partition(":")[0] for line in lines if "doc" in line}
    assert spaces == {"paths", "scopes", "brain", "notes", "sessions", "graph", "files"}
    empty = other.export().read_bytes()
    expected = json.loads(other.run("import", str(first), "--dry-run", "--json"))
    done = other.bring(first)
    assert expected == {**done, "dry_run": True}
    assert other.export().read_bytes() == first.read_bytes()
    assert done["counts"].keys() >= spaces | {"already there", "events of the history"}
    again = other.bring(first)
    assert {name for name, count in again["counts"].items() if count} == {"already there"}
    other.run("check")
    number = next(row["id"] for row in other.audit() if row["outcome"] == "done")
    other.run("undo", str(number))
    assert other.export().read_bytes() == empty
    other.run("check")


def test_an_import_that_was_killed_goes_on(filled: Shell, other: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    first = filled.export()
    monkeypatch.setattr(long_work, "SLICE_SECONDS", -1.0)
    written = portable_import._batches  # a batch is a slice

    def cut(path: Path) -> Iterator[Any]:
        for number, batch in enumerate(written(path)):
            if number == SIZE // 20:
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(portable_import, "_batches", cut)
    with pytest.raises(KeyboardInterrupt):
        other.run("import", str(first))
    monkeypatch.undo()
    other.bring(first)
    assert other.export().read_bytes() == first.read_bytes()
    other.run("check")


def test_files_of_notes_come_back_with_their_content(filled: Shell, other: Shell) -> None:
    other.bring(filled.export())
    theirs, ours = (sorted((one.config.data / "notes").rglob("*.md")) for one in (filled, other))
    assert [file.name for file in ours] == [file.name for file in theirs]
    assert [file.read_bytes() for file in ours] == [file.read_bytes() for file in theirs]


def test_an_export_that_contradicts_the_store_changes_nothing(shell: Shell, other: Shell, tmp_path: Path) -> None:
    for one, content in ((shell, "ours"), (other, "theirs")):
        (tmp_path / f"{content}.json").write_text(json.dumps([{"id": "1", "memory": content}]))
        one.bring(tmp_path / f"{content}.json")
    before = other.export().read_bytes()
    with pytest.raises(Fault, match=r"line \d+: holds a row of brain_memory that is here with another content"):
        other.run("import", str(shell.export()))
    assert other.export().read_bytes() == before


def test_a_dialect_that_is_empty_takes_its_part_and_the_others_must_agree(shell: Shell, other: Shell) -> None:
    kernel = app.open_kernel(shell.config)
    kernel.store.close()
    assert other.bring(shell.export())["counts"]["already there"] > 0


def test_a_note_cannot_be_written_outside_its_folder(shell: Shell, other: Shell, tmp_path: Path) -> None:
    for path in ("../out.md", "a/../../out.md", "C:\\out.md", ".hidden/x.md"):
        head = shell.export().read_bytes().splitlines()[0]
        row = json.dumps({"table": "notes_file", "row": {"project": "default", "path": path, "content": "x"}}).encode()
        body = b"".join(line + b"\n" for line in (head, row))
        end = json.dumps({"end": 2, "sha256": hashlib.sha256(body).hexdigest()}).encode()
        (tmp_path / "bad.jsonl").write_bytes(body + end)
        with pytest.raises(Fault, match="is not the path of a note"):
            other.run("import", str(tmp_path / "bad.jsonl"))

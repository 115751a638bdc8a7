"""Remembering writes a file that reads like the contract's, and nothing else is ever touched."""

import contextlib
import itertools
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handlers import notes
from handlers.notes.memories import MAX_CONTENT_BYTES, remember_texts
from handlers.notes.schemas import Remember
from kernel.calls.dispatch import Dispatch
from kernel.calls.schema import output_schema
from kernel.calls.tools import Reply
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.server import app
from kernel.server.app import Kernel
from kernel.store import history
from kernel.store.transaction import Tx
from tests.catalogue import Catalogue
from tests.conftest import TESTER, Call, Clock
from tests.unit.handlers.notes.conftest import CallOk, files, put, titles, tree

NOW = "2026-01-02T03:04:05.678Z"
LATER = "2026-01-02T04:04:05.678Z"
NOTE = {"title": "Use PostgreSQL", "content": "## Decision\n\nJSONB.", "memoryType": "architectural-decision"}
OUTSIDE = "Write operations only allowed within .mnemonics/"


def refused(reply: Reply) -> tuple[str | None, str]:
    """Code and message of a refusal, which is plain text."""
    assert (reply.media, reply.structured) == ("text/plain; charset=utf-8", None)
    return reply.fault, reply.body.decode()


def test_a_new_memory_is_a_file_as_the_contract_has_it(call_ok: CallOk, clock: Clock, folder: Path) -> None:
    answer = call_ok("memory_remember", **NOTE, tags=["database", "infrastructure"])
    path = folder / "architectural-decision" / "use-postgresql.md"

    assert answer == {
        "success": True,
        "filePath": str(path),
        "memoryType": "architectural-decision",
        "tags": ["database", "infrastructure"],
        "isUpdate": False,
    }
    assert path.read_text() == (
        f"---\nmemory_type: architectural-decision\ntags: [database, infrastructure]\ncreated: {NOW}\nmodified: {NOW}\n"
        "title: Use PostgreSQL\n---\n\n## Decision\n\nJSONB.\n"
    )
    assert [item.stat().st_mode & 0o777 for item in (path, path.parent, folder, folder.parent)] == [
        0o600,
        0o700,
        0o700,
        0o700,
    ]


@pytest.mark.parametrize("form", ["absolute", "relative", "in the folder", "virtual"])
def test_update_keeps_other_front_matter(call_ok: CallOk, clock: Clock, folder: Path, form: str) -> None:
    head = "---\nid: 7\nmemory_type: learning\ntags: one, two\ncreated: '2025-05-05'\nrelated:\n- /x\n"
    file = put(folder, "learning/a note.md", f"{head}---\nold\n")
    path = {
        "absolute": str(file),
        "relative": ".mnemonics/learning/a note.md",
        "in the folder": "learning/a note.md",
        "virtual": "qmd://learning/a note.md",
    }[form]
    answer = call_ok("memory_remember", title="Ignored", content="new", memoryType="Learning", filePath=path)

    assert answer == {
        "success": True,
        "filePath": str(file),
        "memoryType": "learning",
        "tags": ["one", "two"],
        "isUpdate": True,
    }
    assert file.read_text() == f"{head}modified: {NOW}\n---\n\nnew\n"
    again = call_ok("memory_remember", title="x", content="newer", memoryType="learning", filePath=path, tags=["three"])
    assert again["tags"] == ["three"]
    assert file.read_text() == f"{head.replace('one, two', '[three]')}modified: {NOW}\n---\n\nnewer\n"


def test_an_empty_path_creates(call_ok: CallOk) -> None:
    assert call_ok("memory_remember", **NOTE, filePath="")["isUpdate"] is False


@pytest.mark.slow
def test_same_title_gets_numbered_files(call_ok: CallOk, folder: Path) -> None:
    made = [call_ok("memory_remember", **NOTE | {"content": f"number {number}"})["filePath"] for number in range(20)]

    assert len(set(made)) == 20
    assert [Path(path).name for path in made[:3]] == ["use-postgresql.md", "use-postgresql-2.md", "use-postgresql-3.md"]
    assert set(titles(call_ok("memory_recall", isAll=True))) == {"Use PostgreSQL"}


def test_identical_memory_returns_the_existing_file(call_ok: CallOk, clock: Clock, folder: Path) -> None:
    first = call_ok("memory_remember", **NOTE, tags=["a"])
    clock.move(hours=1)
    before = tree(folder)

    assert call_ok("memory_remember", **NOTE, tags=["a"]) == first
    assert tree(folder) == before
    assert call_ok("memory_remember", **NOTE, tags=["b"])["filePath"] != first["filePath"]


def test_names_of_folders_and_links_are_skipped(call_ok: CallOk, folder: Path, tmp_path: Path) -> None:
    outside = put(tmp_path, "outside.md", "outside")
    (folder / "architectural-decision" / "use-postgresql-2.md").mkdir(parents=True)
    (folder / "architectural-decision" / "use-postgresql.md").symlink_to(outside)

    assert call_ok("memory_remember", **NOTE)["filePath"].endswith("/use-postgresql-3.md")
    assert outside.read_text() == "outside"


@pytest.mark.parametrize(
    ("title", "name"),
    [("会議 メモ", "会議-メモ.md"), ("🎉", "memory.md"), ("../../etc/x", "etcx.md"), ("Über größe", "über-größe.md")],
)
def test_any_title_is_kept(call_ok: CallOk, folder: Path, title: str, name: str) -> None:
    answer = call_ok("memory_remember", **NOTE | {"title": f"  {title} "})

    assert answer["filePath"] == str(folder / "architectural-decision" / name)
    assert titles(call_ok("memory_recall", isAll=True)) == [title]


def test_type_change_moves_file_and_keeps_title_and_history(
    kernel: Kernel, call_ok: CallOk, folder: Path, clock: Clock
) -> None:
    put(folder, "issue/my-note.md", "other")
    file = put(folder, "learning/my-note.md", "---\nmemory_type: learning\nid: 7\n---\n\nold\n")
    clock.move(hours=1)
    answer = call_ok("memory_remember", title="x", content="new", memoryType="issue", filePath=str(file))

    assert answer["filePath"] == str(folder / "issue" / "my-note-2.md")
    assert files(folder) == ["issue/my-note-2.md", "issue/my-note.md"]
    text = (folder / "issue" / "my-note-2.md").read_text()
    assert text.startswith("---\nmemory_type: issue\nid: 7\ncreated: ")
    assert text.endswith(f"modified: {LATER}\ntitle: My Note\n---\n\nnew\n")
    old, new = (
        [event.operation for event in kernel.store.read_sync(_events(path))]
        for path in ("learning/my-note.md", "issue/my-note-2.md")
    )
    assert (old, new) == (["moved"], ["updated"])
    assert sorted(titles(call_ok("memory_recall", isAll=True, memoryType="issue"))) == ["My Note", "My Note"]


def _events(path: str) -> Callable[[Tx], list[history.Event]]:
    return lambda tx: history.read(tx, "notes:default", path)


def test_a_file_whose_folder_and_type_disagree_stays_until_its_type_changes(call_ok: CallOk, folder: Path) -> None:
    file = put(folder, "context/a.md", "---\nmemory_type: issue\n---\nx\n")
    update = {"title": "x", "content": "y", "filePath": str(file)}

    assert call_ok("memory_remember", **update, memoryType="issue")["filePath"] == str(file)
    moved = folder / "learning" / "a.md"
    assert call_ok("memory_remember", **update, memoryType="learning")["filePath"] == str(moved)
    assert moved.exists()
    assert not file.exists()


def test_history_has_previous_texts(kernel: Kernel, call_ok: CallOk, clock: Clock, folder: Path) -> None:
    path = call_ok("memory_remember", **NOTE)["filePath"]
    first = Path(path).read_text()
    clock.move(hours=1)
    call_ok("memory_remember", **NOTE | {"content": "two"}, filePath=path)
    second = Path(path).read_text()
    call_ok("memory_forget", filePaths=[path])
    found = kernel.store.read_sync(_events("architectural-decision/use-postgresql.md"))

    assert [(event.operation, event.before, event.after) for event in found] == [
        ("created", None, first),
        ("updated", first, second),
        ("deleted", second, None),
    ]


def test_tags_are_accepted_in_every_form(call_ok: CallOk) -> None:
    for number, tags in enumerate([["a ", "b", "a", ""], "a, b", '["a", "b"]']):
        assert call_ok("memory_remember", **NOTE | {"title": str(number)}, tags=tags)["tags"] == ["a", "b"]


HOSTILE = [
    "---\nmemory_type: issue\n---\n",
    "---",
    "a\r\nb\r\n",
    "\n\n",
    " ",
    "a\0b",
    "\ufeffx",
    "\u2028\x85\x1b[31m",
    "...\n---",
    "x\n\n\n",
    "!!python/object/apply:os.system [x]",
    "&a [*a, *a]",
    "%TAG !",
    "<script>alert(1)</script>",
    "](javascript:x)",
]


@pytest.mark.parametrize("content", HOSTILE)
def test_hostile_content_round_trips_inside_its_field(call_ok: CallOk, content: str, folder: Path) -> None:
    path = call_ok("memory_remember", **NOTE | {"content": content}, tags=["t"])["filePath"]
    for _ in range(2):
        (memory,) = call_ok("memory_recall", isAll=True)["memories"]
        assert memory == memory | {
            "content": content,
            "title": "Use PostgreSQL",
            "memoryType": "architectural-decision",
            "tags": ["t"],
        }
        call_ok("memory_remember", **NOTE | {"content": content}, filePath=path)
    assert len(files(folder)) == 1


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
LINE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
EDGES = [
    ": ",
    "#x",
    "- a",
    "'",
    '"',
    "null",
    "[a]",
    "{a: b}",
    "*a",
    "&a",
    "!x",
    "|",
    ">",
    "%",
    "@",
    "`",
    "\u2028",
    "2026-01-01",
]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINE | st.sampled_from(EDGES), st.lists(LINE | st.sampled_from(EDGES), max_size=3), TEXT)
def test_any_memory_round_trips(call_ok: CallOk, title: str, tags: list[str], content: str) -> None:
    if not title.strip():
        return
    answer = call_ok("memory_remember", title=title, content=content, memoryType="learning", tags=tags)
    found = {memory["path"]: memory for memory in call_ok("memory_recall", isAll=True, limit=1000)["memories"]}
    memory = found[answer["filePath"]]

    assert (memory["title"], memory["content"]) == (title.strip(), content)
    assert memory["tags"] == answer["tags"] == list(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))


def test_each_project_has_a_folder_of_its_own(
    config: Config, caller: Callable[[Dispatch], Call], tmp_path: Path
) -> None:
    for name in ("web", "blog"):
        (tmp_path / name).mkdir()
    roots = os.pathsep.join([f"site={tmp_path / 'web'}", str(tmp_path / "blog")])
    kernel = app.open_kernel(config._replace(environment={"QUIPU_NOTES_ROOTS": roots}))
    call = caller(kernel.dispatch)

    def call_ok(name: str, **arguments: Any) -> Any:
        reply = call(name, **arguments)
        assert reply.fault is None, reply.body
        return json.loads(reply.body)

    assert call_ok("memory_list_types")["projects"] == ["site", "blog"]
    paths = [call_ok("memory_remember", **NOTE, project=name)["filePath"] for name in ("", "blog", "site")]
    assert paths == [
        str(tmp_path / name / ".mnemonics" / "architectural-decision" / "use-postgresql.md")
        for name in ("web", "blog", "web")
    ]
    assert [call_ok("memory_recall", isAll=True, project=name)["count"] for name in ("", "site", "blog")] == [2, 1, 1]
    found = [call_ok("memory_recall", query="PostgreSQL", project=name)["memories"] for name in ("", "blog")]
    assert [{memory["path"] for memory in memories} for memories in found] == [{paths[1], paths[0]}, {paths[1]}]
    assert call_ok("memory_forget", filePaths=[paths[1]])["deletedFiles"] == [paths[1]]
    named = {"filePath": "architectural-decision/use-postgresql.md", "project": "site"}
    assert call_ok("memory_remember", **NOTE, **named)["filePath"] == paths[0]
    assert refused(call("memory_remember", **NOTE, project="none")) == (
        "invalid",
        'Invalid project: "none". Must be one of: site, blog.',
    )
    assert not (config.data / "notes").exists()
    kernel.store.close()


@pytest.mark.parametrize("given", ["learning/a.md", ".mnemonics/learning/a.md", "qmd://learning/a.md"])
def test_a_relative_path_never_means_a_file_of_another_project(
    config: Config, caller: Callable[[Dispatch], Call], tmp_path: Path, given: str
) -> None:
    (tmp_path / "web").mkdir()
    file = put(tmp_path, "blog/.mnemonics/learning/a.md", "mine")
    roots = os.pathsep.join([str(tmp_path / "web"), str(tmp_path / "blog")])
    kernel = app.open_kernel(config._replace(environment={"QUIPU_NOTES_ROOTS": roots}))
    call = caller(kernel.dispatch)
    whole = "give the absolute path that memory_recall answers with"

    assert json.loads(call("memory_forget", filePaths=[given, given]).body) == {
        "success": False,
        "deletedCount": 0,
        "deletedFiles": [],
        "errors": [f"Skipped {given}: could be of any project, {whole}"],
    }
    assert refused(call("memory_remember", **NOTE, filePath=given)) == (
        "invalid",
        f"filePath {given} could be of any project: {whole}, or name the project",
    )
    assert call("memory_remember", **NOTE, filePath=given, project="web").fault == "not_found"
    assert file.read_text() == "mine"
    assert call("memory_remember", **NOTE, filePath=given, project="blog").fault is None
    kernel.store.close()


@pytest.mark.parametrize("path", ["notes.md/a.md", "/".join(32 * "x") + "/a.md"])
def test_a_memory_that_can_be_written_is_found(call_ok: CallOk, folder: Path, path: str) -> None:
    file = put(folder, path, "---\nmemory_type: architectural-decision\n---\n\nx\n")
    assert call_ok("memory_remember", **NOTE, filePath=path)["filePath"] == str(file)
    assert [memory["path"] for memory in call_ok("memory_recall", isAll=True)["memories"]] == [str(file)]


def test_missing_project_is_refused_on_write(
    config: Config, caller: Callable[[Dispatch], Call], tmp_path: Path
) -> None:
    kernel = app.open_kernel(config._replace(environment={"QUIPU_NOTES_ROOTS": str(tmp_path / "web")}))
    assert refused(caller(kernel.dispatch)("memory_remember", **NOTE)) == (
        "storage",
        f"The folder {tmp_path / 'web'} of the project web is not there.",
    )
    assert not (tmp_path / "web").exists()
    kernel.store.close()


def test_a_configured_type_is_a_type(config: Config, caller: Callable[[Dispatch], Call], tmp_path: Path) -> None:
    put(tmp_path, "web/.opencode/opencode-historian.jsonc", '{"memoryTypes": [{"name": "Ritual", "description": "R"}]}')
    types = put(tmp_path, "user.json", '{"memoryTypes": [{"name": "habit", "description": "H"}]}')
    environment = {"QUIPU_NOTES_ROOTS": str(tmp_path / "web"), "QUIPU_NOTES_CONFIG": str(types)}
    kernel = app.open_kernel(config._replace(environment=environment))
    call = caller(kernel.dispatch)
    names = [kind["name"] for kind in json.loads(call("memory_list_types").body)["types"]]

    assert names[-2:] == ["habit", "ritual"]
    for kind in ("Ritual", "habit"):
        assert call("memory_remember", **NOTE | {"memoryType": kind}).fault is None
    types.write_text("{")
    assert call("memory_remember", **NOTE | {"memoryType": "issue"}).fault is None
    assert refused(call("memory_remember", **NOTE | {"memoryType": "habit"}))[1].startswith("Cannot read the types of")
    kernel.store.close()


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("memory_list_types", {"x": 1}, "`x`"),
    ("memory_remember", {}, "`title`"),
    ("memory_remember", {"title": "x"}, "`content`"),
    ("memory_remember", {"title": "x", "content": "y"}, "`memoryType`"),
    ("memory_remember", NOTE | {"extra": 1}, "`extra`"),
    ("memory_remember", NOTE | {"title": 1}, "`title`"),
    ("memory_remember", NOTE | {"title": None}, "`title`"),
    ("memory_remember", NOTE | {"title": "x" * 501}, "`title`"),
    ("memory_remember", NOTE | {"title": " \t "}, "title is required"),
    ("memory_remember", NOTE | {"title": "a\0b"}, "title is required"),
    ("memory_remember", NOTE | {"title": "a\nb"}, "title is required"),
    ("memory_remember", NOTE | {"content": ""}, "content is required"),
    ("memory_remember", NOTE | {"content": "é" * (MAX_CONTENT_BYTES // 2 + 1)}, "content is required"),
    ("memory_remember", NOTE | {"content": 1.5}, "`content`"),
    ("memory_remember", NOTE | {"memoryType": "nothing"}, 'Invalid memory type: "nothing". Must be one of'),
    ("memory_remember", NOTE | {"memoryType": ""}, 'Invalid memory type: "". Must be one of'),
    ("memory_remember", NOTE | {"memoryType": "../context"}, 'Invalid memory type: "../context"'),
    ("memory_remember", NOTE | {"memoryType": "x" * 201}, "`memoryType`"),
    ("memory_remember", NOTE | {"tags": {"a": 1}}, "`tags`"),
    ("memory_remember", NOTE | {"tags": [1]}, "`tags[0]`"),
    ("memory_remember", NOTE | {"tags": ["a\0"]}, "tags are"),
    ("memory_remember", NOTE | {"tags": ["x" * 101]}, "tags are"),
    ("memory_remember", NOTE | {"tags": [str(number) for number in range(65)]}, "tags are"),
    ("memory_remember", NOTE | {"project": "none"}, 'Invalid project: "none". Must be one of: default.'),
    ("memory_remember", NOTE | {"filePath": "/etc/passwd"}, OUTSIDE),
    ("memory_remember", NOTE | {"filePath": "../../a.md"}, OUTSIDE),
    ("memory_remember", NOTE | {"filePath": "qmd://../a.md"}, OUTSIDE),
    ("memory_remember", NOTE | {"filePath": "x/" * 33 + "a.md"}, "filePath is not that of a memory: x/x/"),
    ("memory_remember", NOTE | {"filePath": "a\0.md"}, OUTSIDE),
    ("memory_remember", NOTE | {"filePath": "link.md"}, OUTSIDE),
    ("memory_remember", NOTE | {"filePath": "away/outside.md"}, OUTSIDE),
    ("memory_remember", NOTE | {"filePath": "learning/a.txt"}, "filePath is not that of a memory: learning/a.txt"),
    ("memory_remember", NOTE | {"filePath": "index.md"}, "filePath is not that of a memory: index.md"),
    ("memory_remember", NOTE | {"filePath": "learning"}, "filePath is not that of a memory: learning"),
    (
        "memory_remember",
        NOTE | {"filePath": "learning/none.md"},
        "File not found: learning/none.md. Cannot update non-existent memory.",
    ),
    ("memory_remember", NOTE | {"filePath": "x" * 5000}, "`filePath`"),
    ("memory_remember", NOTE | {"filePath": "x" * 300 + ".md"}, "Cannot use"),
    ("memory_recall", {"limit": -1}, "`limit`"),
    ("memory_recall", {"limit": 1001}, "`limit`"),
    ("memory_recall", {"limit": 2**70}, "`limit`"),
    ("memory_recall", {"limit": "10"}, "`limit`"),
    ("memory_recall", {"query": 5}, "`query`"),
    ("memory_recall", {"query": "x" * 4097}, "`query`"),
    ("memory_recall", {"type": "grep"}, "`type`"),
    ("memory_recall", {"isAll": "yes"}, "`isAll`"),
    ("memory_recall", {"isAll": True, "project": "none"}, 'Invalid project: "none"'),
    ("memory_recall", {"memoryType": 1}, "`memoryType`"),
    ("memory_forget", {}, "`filePaths`"),
    ("memory_forget", {"filePaths": []}, "filePaths array is required and cannot be empty"),
    ("memory_forget", {"filePaths": ""}, "filePaths array is required and cannot be empty"),
    ("memory_forget", {"filePaths": "[]"}, "filePaths array is required and cannot be empty"),
    ("memory_forget", {"filePaths": '["a", 1]'}, "filePaths is not an array of paths"),
    ("memory_forget", {"filePaths": [1]}, "`filePaths[0]`"),
    ("memory_forget", {"filePaths": ["x"] * 1001}, "`filePaths`"),
    ("memory_forget", {"filePaths": ["x" * 5000]}, "`filePaths[0]`"),
    ("memory_sync", {"all": True}, "`all`"),
    ("memory_lint", {"all": True}, "`all`"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), BAD)
def test_bad_arguments_are_named_and_change_nothing(
    unchanged: Call, call_ok: CallOk, folder: Path, tmp_path: Path, name: str, arguments: dict[str, Any], message: str
) -> None:
    put(folder, "learning/a.md", "inside")
    put(folder, "index.md", "wiki")
    put(tmp_path, "outside.md", "outside")
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    (folder / "away").symlink_to(tmp_path)
    call_ok("memory_sync")

    code, text = refused(unchanged(name, **arguments))
    assert code in {"invalid", "blocked", "not_found", "storage"}
    assert message in text


@pytest.mark.parametrize("raw", [b'{"title": "\\ud800"}', b'{"limit": NaN}', b'{"limit": 1e999}', b"[", b"\xff", b""])
def test_invalid_json_is_refused(kernel: Kernel, runner: Any, raw: bytes) -> None:
    for name in ("memory_remember", "memory_recall", "memory_forget", "memory_sync", "memory_lint"):
        reply = runner.run(kernel.dispatch.call(kernel.dispatch.tools[name], raw, TESTER, None))
        assert refused(reply)[0] == "invalid"


@pytest.mark.slow
def test_folder_swapped_for_a_link_never_leads_outside(
    call: Call, folder: Path, tmp_path: Path, catalogue: Catalogue
) -> None:
    inner, asides, outside = folder / "learning", tmp_path / "asides", tmp_path / "outside"
    asides.mkdir()
    for place in (inner, outside):
        for number in range(5):
            put(place, f"n{number}.md", "inside" if place is inner else "outside")
    before = tree(outside)
    done = threading.Event()

    def swap() -> None:
        for number in itertools.count():
            if done.is_set():
                break
            aside = asides / str(number)
            with contextlib.suppress(OSError):  # a call may have made the folder anew
                inner.rename(aside)
                inner.symlink_to(outside)
                time.sleep(0)
                inner.unlink()
                aside.rename(inner)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for number in range(150):
            path = f"learning/n{number % 5}.md"
            call("memory_remember", title=f"n{number}", content="x", memoryType="learning")
            call("memory_remember", title="x", content="new", memoryType="learning", filePath=path)
            call("memory_forget", filePaths=[path])
            shown = call("memory_recall", isAll=True, limit=1000)
            assert b"outside" not in shown.body
    finally:
        done.set()
        swapping.join()
    assert tree(outside) == before
    catalogue(
        "S14", injected="a folder swapped for a link meanwhile", times=600, outcome="nothing read or changed outside"
    )


def test_full_disk_is_reported_and_leaves_no_file(
    unchanged: Call, call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = call_ok("memory_remember", **NOTE)["filePath"]

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    for more in ({"title": "Another", "memoryType": "architectural-decision"}, {"filePath": path}):
        assert refused(unchanged("memory_remember", **NOTE | {"content": "new"} | more)) == (
            "storage",
            "Cannot write to storage, insufficient disk space.",
        )


def test_an_edit_made_while_an_update_is_under_way_is_not_lost(
    kernel: Kernel, call_ok: CallOk, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(folder, "learning/a.md", "---\nkey: old\n---\nold\n")
    edits = iter([0, 1, 2, 3, 4])
    write = os.write

    def edit_first(fd: int, data: Any) -> int:
        if (number := next(edits)) in limit:
            file.write_text(f"---\nkey: edit {number}\n---\nby hand {number}\n")
        return write(fd, data)

    monkeypatch.setattr("os.write", edit_first)
    limit = {0}
    update = {"title": "x", "content": "new", "memoryType": "learning", "filePath": str(file)}
    call_ok("memory_remember", **update)
    assert file.read_text().startswith("---\nkey: edit 0\n")
    last = kernel.store.read_sync(_events("learning/a.md"))[-1]
    assert last.before == "---\nkey: edit 0\n---\nby hand 0\n"


def test_update_gives_up_on_permanent_concurrent_writes(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(folder, "learning/a.md", "old\n")
    write = os.write
    texts = iter("abcdef")

    def edit_first(fd: int, data: Any) -> int:
        file.write_text(next(texts) * 9)
        return write(fd, data)

    monkeypatch.setattr("os.write", edit_first)
    reply = call("memory_remember", title="x", content="new", memoryType="learning", filePath=str(file))
    assert refused(reply) == ("conflict", f"Somebody else is changing {file}, try again.")
    assert file.read_text() == "c" * 9


def test_answers_keep_to_the_schema_and_have_the_keys_of_the_contract(call_ok: CallOk, folder: Path) -> None:
    put(folder, "learning/a.md", "x")
    answers = {
        "memory_list_types": call_ok("memory_list_types"),
        "memory_remember": call_ok("memory_remember", **NOTE),
        "memory_recall": call_ok("memory_recall", isAll=True),
        "memory_forget": call_ok("memory_forget", filePaths=["learning/a.md", "/x"]),
        "memory_sync": call_ok("memory_sync"),
        "memory_lint": call_ok("memory_lint"),
    }
    for tool in notes.DIALECT.tools:
        schema = output_schema(tool)
        assert schema is not None
        jsonschema.validate(answers[tool.name], schema)
    assert [list(answers[name]) for name in ("memory_list_types", "memory_remember", "memory_forget")] == [
        ["types", "fallbackType", "fallbackDescription"],
        ["success", "filePath", "memoryType", "tags", "isUpdate"],
        ["success", "deletedCount", "deletedFiles", "errors"],
    ]


@pytest.mark.parametrize(
    "code", ["invalid", "not_found", "conflict", "blocked", "disabled", "busy", "storage", "internal"]
)
def test_every_refusal_is_the_bare_message(code: Any) -> None:
    assert notes.fail(Fault(code, "Größe.")) == Reply("Größe.".encode(), "text/plain; charset=utf-8", code)


def test_texts_hook_returns_the_indexed_text(kernel: Kernel, call_ok: CallOk) -> None:
    request = Remember(**NOTE, tags=["a", " b "])
    call_ok("memory_remember", **NOTE, tags=["a", " b "])
    (source,) = kernel.store.read_sync(lambda tx: list(notes.sync.sources(tx)))

    assert remember_texts(request) == [source.text] == ["Use PostgreSQL\na, b\n## Decision\n\nJSONB."]
    assert remember_texts(Remember(**NOTE, filePath="x")) == []

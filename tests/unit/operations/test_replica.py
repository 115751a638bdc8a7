"""A copy that follows a data directory: its content, and the places where it must not be made."""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.cli.main import main
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.operations import replica as replicas
from kernel.operations.replica import Replica
from kernel.security import api_keys
from kernel.security.api_keys import Key
from kernel.server import app
from kernel.server.app import Kernel
from tests.conftest import Call

ROOT = Path(__file__).resolve().parents[3]
Following = tuple[Replica, Call]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "copy"


@pytest.fixture
def following(kernel: Kernel, call: Call, caller: Callable[[Dispatch], Call], target: Path) -> Iterator[Following]:
    """The copy of a store with one memory, and calls of a kernel that serves it."""
    call("add_memory", path="car", content="red")
    with closing(Replica(kernel.config, target)) as replica:
        assert replica.refresh()
        served = app.open_kernel(kernel.config._replace(data=target, follow=True))
        try:
            yield replica, caller(served.dispatch)
        finally:
            served.store.close()


def test_refresh_copies_what_has_changed_and_nothing_else(following: Following, call: Call) -> None:
    replica, here = following
    assert b"red" in here("read_memory", path="car").body
    assert not replica.refresh()
    call("add_memory", path="boat", content="blue")
    assert here("read_memory", path="boat").fault == "not_found"
    assert replica.refresh()
    assert b"blue" in here("read_memory", path="boat").body
    assert b"paths/boat" in here("recall", query="blue").body


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("add_memory", {"path": "a", "content": "b"}),
        ("save_memory", {"db": "core", "content": "x", "category": "fact"}),
        ("memory_knowledge", {"action": "add", "scopeType": "global", "title": "x", "content": "x"}),
        ("memory_remember", {"title": "x", "content": "x", "memoryType": "context"}),
        ("remember", {"content": "x", "session_id": "s"}),
        ("create_entities", {"entities": [{"name": "a", "entityType": "b", "observations": []}]}),
        ("memory", {"command": "create", "path": "/memories/a.txt", "file_text": "x"}),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_every_dialect_refuses_a_write_and_says_where_to_write(
    following: Following, kernel: Kernel, tool: str, arguments: dict[str, object]
) -> None:
    reply = following[1](tool, **arguments)
    told = f"This server only reads: it follows {kernel.config.data}. Write there."
    assert (reply.fault, told in reply.body.decode()) == ("disabled", True)


def test_reads_that_would_write_first_answer_with_what_is_there(following: Following) -> None:
    here = following[1]
    assert [
        here(tool, **given).fault for tool, given in (("recall", {"query": "red"}), ("memory_recall", {"query": "x"}))
    ] == [
        None,
        None,
    ]


def test_keys_follow_so_that_a_copy_admits_whom_its_source_admits(
    following: Following, kernel: Kernel, target: Path
) -> None:
    replica, _ = following
    key, _ = api_keys.create(kernel.config.data, Key("", "read", "2026-01-01T00:00:00.000Z"))
    replica.refresh()
    assert [one.id for one in api_keys.read(target)] == [key.id]
    (kernel.config.data / api_keys.FILE).unlink()
    replica.refresh()
    assert not (target / api_keys.FILE).exists()


def test_tenants_follow(kernel: Kernel, call: Call, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("add_memory", path="car", content="red")
    monkeypatch.setattr(replicas, "_TENANTS_SECONDS", 0.0)
    app.prepare_data(kernel.config._replace(tenant="acme"), kernel.store.context)
    with closing(Replica(kernel.config, target)) as replica:
        replica.refresh()
        app.prepare_data(kernel.config._replace(tenant="later"), kernel.store.context)
        replica.refresh()
    assert sorted(path.parent.name for path in target.rglob("quipu.db")) == ["acme", "copy", "later"]


def test_folder_with_a_store_of_its_own_is_refused(kernel: Kernel, call: Call, target: Path) -> None:
    call("add_memory", path="car", content="red")
    app.prepare_data(Config(target, model=None), app.base_context(None))
    before = (target / "quipu.db").read_bytes()
    with pytest.raises(Fault, match="holds a store of its own"):
        Replica(kernel.config, target)
    assert ((target / "quipu.db").read_bytes(), replicas.is_replica(target)) == (before, False)


@pytest.mark.parametrize("inside", [".", "copy", "tenants/acme"])
def test_folder_in_the_data_directory_is_refused(kernel: Kernel, inside: str) -> None:
    with pytest.raises(Fault, match="is in the data directory itself"):
        Replica(kernel.config, kernel.config.data / inside)


def test_only_one_process_makes_a_copy_and_none_a_copy_of_a_copy(
    following: Following, kernel: Kernel, target: Path, tmp_path: Path
) -> None:
    with pytest.raises(Fault, match=r"Another process holds replica\.lock"):
        Replica(kernel.config, target)
    with pytest.raises(Fault, match="follows"):
        Replica(kernel.config._replace(data=target), tmp_path / "third")


def test_copy_that_is_served_does_not_change_its_source(
    following: Following, kernel: Kernel, target: Path, tmp_path: Path
) -> None:
    following[0].close()
    other = kernel.config._replace(data=tmp_path / "other")
    app.prepare_data(other, kernel.store.context)
    with pytest.raises(Fault, match="is served as a copy of another source"):
        Replica(other, target)
    assert json.loads((target / replicas.MARK).read_text())["source"] == str(kernel.config.data)


def test_source_of_another_schema_is_not_copied(
    following: Following, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica, here = following
    call("add_memory", path="boat", content="blue")
    for copy in replica._copies.values():
        monkeypatch.setattr(copy, "_schema", 1)
    with pytest.raises(Fault, match="The source has schema"):
        replica.refresh()
    assert here("read_memory", path="boat").fault == "not_found"


@pytest.mark.parametrize(
    "words",
    [["serve"], ["check"], ["undo", "1"], ["reindex"], ["compact"], ["key", "create", "--scope", "read"]],
    ids=" ".join,
)
def test_commands_that_write_refuse_a_copy(
    following: Following, target: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if words == ["serve"]:
        outcome = catch_faults(app.open_kernel, Config(target, model=None))
        assert isinstance(outcome, Fault)
        told = outcome.message
    else:
        assert main([*words, "--data", str(target)]) == 1
        told = capsys.readouterr().err
    assert "`quipu serve --follow` serves it, read-only" in told


def test_only_a_copy_is_followed(kernel: Kernel) -> None:
    with pytest.raises(Fault, match="follows no other data directory"):
        app.open_kernel(kernel.config._replace(follow=True))


def damage_page(file: Path) -> None:
    db = apsw.Connection(str(file))
    ((page,),) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'history'").fetchall()
    size = db.pragma("page_size")
    db.close()
    with file.open("r+b") as content:
        content.seek((int(str(page)) - 1) * int(str(size)))
        content.write(b"\xff" * 8)


def damage_text(file: Path) -> None:
    db = apsw.Connection(str(file))
    db.execute("UPDATE paths_memory SET content = 'rod'")
    db.close()


def damage_full_text(file: Path) -> None:
    db = apsw.Connection(str(file))
    db.execute("UPDATE doc_fts_data SET block = zeroblob(length(block)) WHERE id > 10")
    db.close()


DAMAGE = {
    "a page": (damage_page, r"Tree \d+ page \d+: btreeInitPage\(\) returns error code 11"),
    "a text": (damage_text, 'paths car: the row has "car rod", the index has "car red", and so has the history'),
    "full text": (damage_full_text, "fts5: corruption found reading blob"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_source_is_told_and_the_last_sound_copy_stays(
    kernel: Kernel, call: Call, target: Path, kind: str
) -> None:
    call("add_memory", path="car", content="red")
    with closing(Replica(kernel.config, target)) as replica:
        assert replica.refresh()
    before = (target / "quipu.db").read_bytes()
    kernel.store.close()
    harm, told = DAMAGE[kind]
    harm(kernel.config.file)
    command = [sys.executable, "-m", "kernel", "replica", str(target), "--data", str(kernel.config.data)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    message = rf"quipu: The source is damaged: {told}.*\. The copy stays as it was; run `quipu check` on the source\.\n"
    assert re.fullmatch(message, done.stderr), done.stderr
    assert (target / "quipu.db").read_bytes() == before


@pytest.mark.parametrize("pause", [0.0, 0.3], ids=["at once", "after the pause between checks"])
def test_copy_ends_when_its_source_is_damaged_while_it_follows(
    kernel: Kernel, call: Call, target: Path, pause: float
) -> None:
    call("add_memory", path="car", content="red")
    with closing(Replica(kernel.config, target)) as replica:
        assert replica.refresh()
        replica._copies["main"]._check_at = time.monotonic() + pause
        kernel.store.close()
        damage_page(kernel.config.file)
        db = apsw.Connection(str(kernel.config.file))
        db.execute("UPDATE setting SET value = value")
        db.close()
        with pytest.raises(Fault, match="The source is damaged"):
            replica.run(threading.Event(), catch_faults)

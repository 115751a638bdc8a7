"""A damaged file is refused at the start or at the first touch, by name and for as long as it is damaged; what can be
derived from sound rows is made anew.
"""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.core.config import MODEL, Config
from kernel.core.errors import Fault
from kernel.operations import consistency
from kernel.server import app
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.reliability.server_process import ROOT, Client, engine, free_port, serving

MEMORIES = 120
FLIPS = int(os.environ.get("BYTES_CHANGED", "12"))
WORDS = "cord knot string dye maker reader number colour".split()
Bind = Callable[[Dispatch], Call]
Harm = Callable[[bytearray], bytes | None]
CALLS = [
    ("read_memory", {"path": "m/3"}),
    ("list_memories", {}),
    ("recall", {"query": "cords and knots"}),
    ("replace_memory", {"path": "m/5", "content": "changed"}),
    ("add_memory", {"path": "new", "content": "a new cord"}),
    ("drop_memory", {"path": "m/7"}),
    ("get_memories", {"db": "core"}),
    ("hybrid_search", {"db": "core", "query": "a fact"}),
    ("read_graph", {}),
    ("add_observations", {"observations": [{"entityName": "e3", "contents": ["a new cord"]}]}),
    ("memory", {"command": "view", "path": "/memories"}),
    ("memory", {"command": "view", "path": "/memories/3"}),
    ("memory", {"command": "delete", "path": "/memories/7"}),
]


class Sound(NamedTuple):
    """The bytes of a sound file, and the pages of each table."""

    content: bytes
    pages: dict[str, list[int]]
    page: int


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sound]:
    """A file with memories of four dialects, closed in order."""
    data = tmp_path_factory.mktemp("sound") / "data"
    chance = random.Random(1)
    with serving(data) as server:
        client = Client(server.port)
        for number in range(MEMORIES):
            text = f"{number} {' '.join(chance.choices(WORDS, k=60))}"
            assert client.call("add_memory", path=f"m/{number}", content=text)[0] == 200
            assert client.call("save_memory", db="core", content=f"fact {text}", category="fact")[0] == 200
            entity = {"name": f"e{number}", "entityType": "cord", "observations": [text]}
            assert client.call("create_entities", entities=[entity])[0] == 200
            assert client.call("memory", command="create", path=f"/memories/{number}", file_text=text)[0] == 200
        client.close()
        server.stop()
    pages: dict[str, list[int]] = {}
    with engine(data) as db:
        for name, number in db.execute("SELECT name, pageno FROM dbstat WHERE pagetype = 'leaf'"):
            pages.setdefault(str(name), []).append(int(str(number)))
        size = db.pragma("page_size")
    yield Sound((data / "quipu.db").read_bytes(), pages, size)
    shutil.rmtree(data)


def put(folder: Path, content: bytes) -> Config:
    """A data directory with this file."""
    folder.mkdir(parents=True)
    (folder / "quipu.db").write_bytes(content)
    return Config(data=folder)


def lived_through(config: Config, bind: Bind) -> tuple[str, set[str | None]]:
    """Why the file was not opened, or the faults of calls to it; every answer of storage names a remedy."""
    opened = catch_faults(app.open_kernel, config)
    if isinstance(opened, Fault):
        assert opened.code == "storage"
        return opened.message, set()
    call = bind(opened.dispatch)
    try:
        replies = [call(tool, **arguments) for tool, arguments in CALLS]
    finally:
        opened.store.close()
    assert all(b"quipu check" in reply.body for reply in replies if reply.fault == "storage")
    return "", {reply.fault for reply in replies}


def flipped(sound: Sound, page: int, at: int, count: int) -> bytes:
    """The file with every bit of some bytes of a page turned round."""
    content = bytearray(sound.content)
    start = (page - 1) * sound.page + at
    content[start : start + count] = bytes(byte ^ 0xFF for byte in content[start : start + count])
    return bytes(content)


DAMAGED = "The database is damaged: run `quipu check`, or `quipu restore` a backup."
AT_START: dict[str, tuple[Callable[[Sound], bytes], str]] = {
    "header of page 1": (lambda sound: flipped(sound, 1, 0, 16), DAMAGED),
    "schema in page 1": (lambda sound: flipped(sound, 1, 100, 8), DAMAGED),
    "cut in half": (lambda sound: sound.content[: len(sound.content) // 2], DAMAGED),
    "cut within a page": (lambda sound: sound.content[: len(sound.content) // 2 + 777], DAMAGED),
    "a text file": (lambda _sound: b"dear diary\n" * 1000, DAMAGED),
}


@pytest.mark.parametrize("harm", AT_START)
def test_a_file_damaged_where_it_begins_is_refused_at_every_start_and_left_as_it_is(
    tmp_path: Path, sound: Sound, caller: Bind, catalogue: Catalogue, harm: str
) -> None:
    make, told = AT_START[harm]
    content = make(sound)
    config = put(tmp_path / "data", content)
    assert [lived_through(config, caller) for _ in range(3)] == [(told, set())] * 3
    assert config.file.read_bytes() == content
    catalogue("R10", injected=f"damaged file: {harm}", times=3, outcome="refused at the start by name, left as it is")


def test_a_server_ends_with_one_line_before_a_damaged_file(tmp_path: Path, sound: Sound, catalogue: Catalogue) -> None:
    config = put(tmp_path / "data", flipped(sound, 1, 100, 8))
    command = [sys.executable, "-m", "kernel", "serve", "--data", str(config.data), "--port", str(free_port())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[-1], "Traceback" in done.stderr) == (1, f"quipu: {DAMAGED}", False)
    catalogue("R10", injected="server before a damaged file", times=1, outcome="one line, status 1")


TABLES = ["paths_memory", "doc", "doc_vector", "doc_fts_data", "history", "brain_memory", "graph_entity"]


@pytest.mark.parametrize("table", [*TABLES, "graph_observation", "files_memory", "files_version"])
def test_a_damaged_page_is_told_by_what_touches_it_and_by_check(
    tmp_path: Path, sound: Sound, caller: Bind, catalogue: Catalogue, table: str
) -> None:
    pages = sound.pages[table]
    for number, page in enumerate(pages[:: len(pages) // 2 or 1]):
        config = put(tmp_path / str(number), flipped(sound, page, 0, 8))
        why, faults = lived_through(config, caller)
        assert (why, faults - {None, "storage", "not_found"}) == ("", set())
        advice = "check --repair" if table in {"doc_vector", "doc_fts_data"} else "restore"
        with pytest.raises(Fault, match=rf"The file is damaged: Tree .*`quipu {advice}`"):
            consistency.check(config.file, app.base_context(MODEL), app.DIALECTS)
    times = len(pages[:: len(pages) // 2 or 1])
    catalogue("R10", injected=f"damaged page of {table}", times=times, outcome="named when touched, and by check")


def test_text_that_is_no_text_any_more_is_damage_and_no_bug(
    tmp_path: Path, sound: Sound, caller: Bind, catalogue: Catalogue
) -> None:
    page = sound.pages["paths_memory"][1]
    config = put(tmp_path / "data", flipped(sound, page, sound.page // 2, 64))
    opened = app.open_kernel(config)
    call = caller(opened.dispatch)
    replies = [call("read_memory", path=f"m/{number}") for number in range(MEMORIES)]
    opened.store.close()
    faults = [reply.fault for reply in replies]
    assert set(faults) == {None, "storage"}
    assert 1 <= faults.count("storage") <= 2  # those the bytes belong to, and nobody else
    catalogue("R10", injected="bytes of a text", times=1, outcome="that memory is told as damaged, the others are read")


def test_damaged_full_text_is_made_anew_from_the_rows(
    tmp_path: Path, sound: Sound, caller: Bind, catalogue: Catalogue
) -> None:
    pages = sound.pages["doc_fts_data"]
    for number, page in enumerate(pages):
        config = put(tmp_path / str(number), flipped(sound, page, sound.page // 2, 64))
        found = consistency.check(config.file, app.base_context(MODEL), app.DIALECTS, repair=True)
        assert {finding.part for finding in found} <= {"file", "full text"}
        assert consistency.check(config.file, app.base_context(MODEL), app.DIALECTS) == []
        assert lived_through(config, caller) == ("", {None})
    catalogue("R10", injected="bytes of a full-text segment", times=len(pages), outcome="rebuilt by check --repair")


def test_bytes_changed_anywhere_never_become_a_bug_of_ours(
    tmp_path: Path, sound: Sound, caller: Bind, catalogue: Catalogue
) -> None:
    chance = random.Random(FLIPS)
    used = [page for pages in sound.pages.values() for page in pages if len(pages) > 1]
    refused = 0
    for number in range(FLIPS):
        content = bytearray(sound.content)
        for _ in range(chance.choice((1, 1, 3, 10))):
            start = (chance.choice(used) - 1) * sound.page + chance.choice((0, 8, chance.randrange(sound.page - 8)))
            content[start : start + 8] = chance.randbytes(8)
        config = put(tmp_path / str(number), bytes(content))
        why, faults = lived_through(config, caller)
        refused += bool(why) or "storage" in faults
        # The engine cannot tell a length that was changed from a value that is too large: that is "invalid".
        assert faults <= {None, "storage", "not_found", "conflict", "invalid"}, number
        shutil.rmtree(config.data)
    outcome = f"{refused} named as damaged, no traceback"
    catalogue("R10", injected="bytes changed anywhere", times=FLIPS, outcome=outcome)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a server that was killed after a write."""
    data = tmp_path_factory.mktemp("killed") / "data"
    with serving(data) as server:
        client = Client(server.port)
        assert client.call("add_memory", path="logged", content="only in the log")[0] == 200
        client.close()
        server.kill()
    return data


def test_an_empty_file_beside_a_log_is_refused_and_the_log_is_kept(
    tmp_path: Path, killed: Path, catalogue: Catalogue, caller: Bind
) -> None:
    data = shutil.copytree(killed, tmp_path / "data")
    whole = (data / "quipu.db-wal").read_bytes()
    (data / "quipu.db").write_bytes(b"")
    assert lived_through(Config(data=data), caller)[0].startswith("quipu.db is empty and its log is not")
    assert (data / "quipu.db-wal").read_bytes() == whole
    catalogue("R10", injected="file of no length beside a log", times=1, outcome="refused, the log is kept")

"""One changed byte anywhere in a file or its log is named, mended to what was there, or without effect: never silent,
and never mended to the damaged text.
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel import app
from kernel.cli import doctor
from kernel.config import MODEL, Config
from kernel.dispatch import Dispatch, catch_faults
from kernel.errors import Fault
from kernel.maintenance import consistency
from kernel.maintenance.data_access import cut_damaged_log
from kernel.store.sqlite.connection import Connection
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.reliability.server_process import Client, serving
from tests.reliability.write_scenario import BRAIN, PATHS, SCOPES, SESSIONS, Kept

PLACES = int(os.environ.get("BYTES_CHANGED", "24")) // 2
LOG_PLACES = PLACES // 2
ENDING = {"clear_memory", "maintenance"}  # they leave nothing of the others
MADE_ANEW = ("doc_fts", "doc_part", "doc_sketch", "doc_gone", "sqlite_", "log_stamp", "doc_vector")
WORDS = "cord knot string dye maker reader number colour".split()
Bind = Callable[[Dispatch], Call]
Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def sound(tmp_path_factory: pytest.TempPathFactory, caller: Bind) -> Iterator[Path]:
    """A file with rows of all dialects and with free pages, closed in order."""
    config = Config(data=tmp_path_factory.mktemp("sound") / "data")
    running = app.open_kernel(config)
    call, kept, chance = caller(running.dispatch), Kept(), random.Random(3)
    for number in range(60):
        text = f"{number} {' '.join(chance.choices(WORDS, k=60))}"
        assert call("add_memory", path=f"m/{number}", content=text).fault is None
        assert call("save_memory", db="core", content=f"fact {text}", category="fact").fault is None
        assert call("remember", content=f"session {text}", session_id="s9").fault is None
        note = call("memory_remember", title=f"note {number}", content=f"note {text}", memoryType="context")
        assert note.fault is None
    for number in range(0, 60, 3):
        assert call("drop_memory", path=f"m/{number}").fault is None
    for step in (*PATHS, *SCOPES[:-1], *BRAIN, *SESSIONS):
        if step.tool not in ENDING:
            kept.take(step, call(step.tool, **kept.arguments(step)))
    running.store.close()
    yield config.data
    shutil.rmtree(config.data)


def rows_of(config: Config) -> Rows:
    """Every row that is not derived from others, and the vectors, as anybody reads them."""
    db = Connection(config.file, app.base_context(None), readonly=True)
    try:
        names = db.values("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
        rows = {name: db.values(f'SELECT * FROM "{name}"') for (name,) in names if not name.startswith(MADE_ANEW)}
        return {**rows, "vectors": db.values("SELECT doc, model, place, scale, vector FROM doc_vector ORDER BY doc")}
    finally:
        db.close()


def checked(config: Config, *, repair: bool) -> object:
    """The findings, or the Fault."""
    return catch_faults(lambda: consistency.check(config.file, app.base_context(MODEL), app.DIALECTS, repair=repair))


def outcome(config: Config, before: Rows) -> str:
    """What becomes of a damaged file."""
    found = checked(config, repair=False)
    told = {diagnosis.grade for diagnosis in doctor.database(config)}
    if found == []:
        return "without effect" if rows_of(config) == before else "silent"
    if isinstance(found, Fault) and "wrong" not in told:
        return "sound to the doctor"
    repaired = checked(config, repair=True)
    if isinstance(repaired, Fault):
        return "named" if repaired.code == "storage" else "a bug"
    if checked(config, repair=False) != []:
        return "named"
    return "mended" if rows_of(config) == before else "mended to the damaged text"


def changed(file: Path, at: int, chance: random.Random) -> None:
    """Turns some bits of one byte."""
    with file.open("r+b") as content:
        content.seek(at)
        byte = content.read(1)[0]
        content.seek(at)
        content.write(bytes([byte ^ chance.randrange(1, 256)]))


def test_a_changed_byte_of_a_file_is_named_or_mended_to_what_was_there(
    tmp_path: Path, sound: Path, catalogue: Catalogue
) -> None:
    before = rows_of(Config(data=sound))
    chance, seen = random.Random(PLACES), Counter[str]()
    for number in range(PLACES):
        config = Config(data=shutil.copytree(sound, tmp_path / str(number)))
        changed(config.file, chance.randrange(config.file.stat().st_size), chance)
        seen[outcome(config, before)] += 1
        shutil.rmtree(config.data)
    told = ", ".join(f"{count} {name}" for name, count in sorted(seen.items()))
    catalogue("R34", injected="one byte of the file changed", times=PLACES, outcome=f"{told}; 0 silent")
    assert seen.keys() <= {"named", "mended", "without effect"}, seen


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a server that was killed with everything in its log."""
    data = tmp_path_factory.mktemp("killed") / "data"
    with serving(data) as server:
        client = Client(server.port)
        for number in range(40):
            assert client.call("add_memory", path=f"m/{number}", content="only in the log " * 20)[0] == 200
        client.close()
        server.kill()
    return data


@pytest.mark.parametrize(
    ("harm", "index"), [("a byte changed", True), ("a byte changed", False), ("cut off", True)], ids=str
)
def test_a_log_that_lost_answered_writes_is_refused_and_kept(
    tmp_path: Path, killed: Path, catalogue: Catalogue, harm: str, *, index: bool
) -> None:
    """Of a log that was cut off only its index knows: without it, it is one that was shorter."""
    chance = random.Random(LOG_PLACES)
    size = (killed / "quipu.db-wal").stat().st_size
    for number in range(LOG_PLACES):
        config = Config(data=shutil.copytree(killed, tmp_path / str(number)), model=None)
        log = config.file.with_name("quipu.db-wal")
        at = chance.randrange(32, size if index else size // 2)
        if harm == "cut off":
            os.truncate(log, at)
        else:
            changed(log, at, chance)
        if not index:
            config.file.with_name("quipu.db-shm").unlink()
        damaged = log.read_bytes()
        refused = catch_faults(app.open_kernel, config)
        assert isinstance(refused, Fault)
        assert refused.message.startswith("quipu.db-wal is damaged: ")
        assert [(found.grade, refused.message in found.detail) for found in doctor.database(config)] == [
            ("wrong", True)
        ]
        assert log.read_bytes() == damaged
        cut_damaged_log(config, "now")
        assert (config.data / "quipu-damaged-now.db-wal").read_bytes() == damaged
        assert checked(config, repair=False) == []
        shutil.rmtree(config.data)
    name = f"log with {harm}" + ("" if index else ", without its index")
    catalogue("R35", injected=name, times=LOG_PLACES, outcome="refused by name, kept, and cut when asked to")

"""One changed byte of a file is named if SQLite's integrity check sees it; of a log with one, the writes before it are
there.
"""

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.cli import doctor
from kernel.core.config import MODEL, Config
from kernel.core.errors import Fault
from kernel.engines.sqlite.connection import Connection
from kernel.operations import consistency
from kernel.server import app
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.reliability.server_process import Client, serving
from tests.reliability.write_scenario import BRAIN, FILES, GRAPH, PATHS, SCOPES, SESSIONS, Kept

WRITES = 40  # in the log
PLACES = int(os.environ.get("BYTES_CHANGED", "24")) // 2
LOG_PLACES = PLACES // 2
ENDING = {"clear_memory", "maintenance"}  # they leave nothing of the others
MADE_ANEW = ("doc_fts", "doc_part", "doc_sketch", "doc_gone", "sqlite_", "doc_vector")
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
    for step in (*PATHS, *SCOPES[:-1], *BRAIN, *SESSIONS, *GRAPH, *FILES):
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


def integrity(config: Config) -> bool:
    """Whether SQLite's integrity check finds the file sound, as the shell of SQLite would run it."""
    db = apsw.Connection(str(config.file))
    try:
        return db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    except (apsw.CorruptError, apsw.NotADBError):
        return False
    finally:
        db.close()


def outcome(config: Config, before: Rows) -> str:
    """Return the outcome for a damaged file."""
    sound = integrity(config)
    findings = checked(config, repair=False)
    told = {diagnosis.grade for diagnosis in doctor.database(config)}
    if findings == []:
        unseen = "not seen by SQLite either" if sound else "wrong: silent"
        return "without effect" if catch_faults(rows_of, config) == before else unseen
    if not sound and "wrong" not in told:
        return f"wrong: sound to the doctor: {findings}"
    repaired = checked(config, repair=True)
    if isinstance(repaired, Fault):
        return "named" if repaired.code == "storage" else f"wrong: {findings}, {repaired.message}"
    if checked(config, repair=False) != []:
        return "named"
    return "mended" if catch_faults(rows_of, config) == before else "named, then taken as it is"


def changed(file: Path, at: int, chance: random.Random) -> None:
    """Turns some bits of one byte."""
    with file.open("r+b") as content:
        content.seek(at)
        byte = content.read(1)[0]
        content.seek(at)
        content.write(bytes([byte ^ chance.randrange(1, 256)]))


def test_a_changed_byte_of_a_file_that_sqlite_sees_is_named_or_mended(
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
    assert not [name for name in seen if name.startswith("wrong")], seen


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a server that was killed with everything in its log."""
    data = tmp_path_factory.mktemp("killed") / "data"
    with serving(data) as server:
        client = Client(server.port)
        for number in range(WRITES):
            assert client.call("add_memory", path=f"m/{number}", content="only in the log " * 20)[0] == 200
        client.close()
        server.kill()
    return data


@pytest.mark.parametrize("harm", ["a byte changed", "cut off"])
def test_of_a_damaged_log_the_writes_before_the_damage_are_there(
    tmp_path: Path, killed: Path, catalogue: Catalogue, caller: Bind, harm: str
) -> None:
    """SQLite cannot distinguish it from the log of a power cut, whose last commit is torn."""
    chance, whole = random.Random(LOG_PLACES), (killed / "quipu.db-wal").read_bytes()
    left: list[int] = []
    for number in range(LOG_PLACES):
        config = Config(data=shutil.copytree(killed, tmp_path / str(number)), model=None)
        log = config.file.with_name("quipu.db-wal")
        at = chance.randrange(len(whole))
        if harm == "cut off":
            os.truncate(log, at)
        else:
            changed(log, at, chance)
        opened = app.open_kernel(config)
        call = caller(opened.dispatch)
        there = [call("read_memory", path=f"m/{memory}").fault is None for memory in range(WRITES)]
        opened.store.close()
        assert there == sorted(there, reverse=True), at
        assert checked(config, repair=False) == []
        left.append(sum(there))
        shutil.rmtree(config.data)
    told = f"the file is sound, with the first {min(left)} to {max(left)} of {WRITES} writes"
    catalogue("R35", injected=f"log with {harm}", times=LOG_PLACES, outcome=told)

"""A backup that is put in place equals its original, or is refused by name; a restore or a backup that is killed
leaves the old state or the new one.

RESTORE_ROUNDS sets how often a server dies with a log left behind (3 by default), STEPS_EVERY at which steps of a
backup and of a restore its process is killed.
"""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.calls.dispatch import Dispatch, catch_faults
from kernel.cli.main import main
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.server import app
from tests.catalogue import Catalogue
from tests.conftest import Call
from tests.reliability.server_process import ROOT, Client, Countdown, Writer, finish, serving

ROUNDS = int(os.environ.get("RESTORE_ROUNDS", "3"))
EVERY = int(os.environ.get("STEPS_EVERY", "13"))
Bind = Callable[[Dispatch], Call]
Rows = dict[str, list[Any]]

KILLED = """
import os, signal, sys
from kernel.cli.main import main

if os.environ.get("BROKEN"):
    from tests.security import broken_builds
    broken_builds.pytest_configure()
left = int(sys.argv[1])
CHANGES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.utime", "shutil.rmtree"}

def step(event, arguments):
    global left
    if event in CHANGES and any(str(part).startswith(sys.argv[2]) for part in arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(step)
sys.exit(main(sys.argv[3:]))
"""


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command of its own process."""
    words = [sys.executable, "-m", "kernel", *map(str, arguments)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def killed_at(step: int, below: Path, *arguments: object) -> bool:
    """Runs a command that is killed at its Nth change of a file below a folder; whether it got that far."""
    words = [sys.executable, "-c", KILLED, str(step), str(below), *map(str, arguments)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in {0, -9}, done.stderr
    return done.returncode == -9


def rows(file: Path) -> Rows:
    """Every row of every ordinary table."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    names: Any = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    found: Rows = {str(name): db.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names.fetchall()}
    db.close()
    return found


def crash(data: Path, number: int, chance: random.Random, backup: Path | None) -> None:
    """A server that writes and is killed, with a log left behind; `backup` is taken before its last writes."""
    with serving(data, QUIPU_MODEL="none") as server:
        for part in range(2):
            countdown = Countdown(chance.randrange(20, 120))
            writers = [
                Writer(server.port, f"{number}-{part}-{at}", chance.randrange(1 << 30), countdown) for at in (1, 2)
            ]
            for writer in writers:
                writer.start()
            assert countdown.done.wait(60)
            if part:
                server.kill()
            finish(writers)
            if backup is not None and not part:
                assert command("backup", backup, "--data", data).returncode == 0
    assert (data / "quipu.db-wal").stat().st_size > 32


def test_after_a_crash_a_backup_is_restored_whole_and_one_copied_by_hand_is_refused(
    tmp_path: Path, catalogue: Catalogue
) -> None:
    chance, data = random.Random(3), tmp_path / "data"
    for number in range(ROUNDS):
        copy = tmp_path / f"{number}.db"
        crash(data, number, chance, copy)
        config = Config(data=tmp_path / "try", model=None)
        shutil.copytree(data, config.data)
        shutil.copyfile(copy, config.file)
        refused = catch_faults(app.open_kernel, config)
        assert isinstance(refused, Fault)
        assert refused.message.startswith("quipu.db-wal does not belong to quipu.db")
        shutil.rmtree(config.data)
        assert command("restore", copy, "--data", data).returncode == 0
        restored = rows(data / "quipu.db")
        assert restored == rows(copy)
        assert len(restored["paths_memory"]) > 0
    catalogue("R27", injected="crash with a log left, then quipu restore", times=ROUNDS, outcome="equal to the backup")
    catalogue("R28", injected="crash with a log left, then cp of a backup", times=ROUNDS, outcome="refused by name")


@pytest.fixture
def filled(tmp_path: Path, caller: Bind) -> Path:
    """A data directory with two tenants, notes, and a key."""
    data = tmp_path / "data"
    for tenant in ("main", "ada"):
        opened = app.open_kernel(Config(data=data, model=None, tenant=tenant))
        call = caller(opened.dispatch)
        for number in range(3):
            assert call("memory_remember", title=f"note {number}", content=tenant, memoryType="context").fault is None
        assert call("add_memory", path="of", content=tenant).fault is None
        opened.store.close()
    assert main(["key", "create", "--scope", "write", "--data", str(data)]) == 0
    return data


def state(data: Path) -> dict[str, object]:
    """Return the data of a user: rows, files of notes and keys, once the directory has been opened."""
    for tenant in ("main", "ada"):
        app.open_kernel(Config(data=data, model=None, tenant=tenant)).store.close()
    files = [path for folder in (data, data / "tenants/ada") for path in (folder / "notes/.mnemonics").rglob("*.md")]
    keys = data / "keys.json"
    return {
        "main": rows(data / "quipu.db"),
        "ada": rows(data / "tenants/ada/quipu.db"),
        "keys": keys.read_bytes() if keys.exists() else None,
        **{str(path.relative_to(data)): path.read_bytes() for path in files},
    }


def changed(data: Path, caller: Bind) -> dict[str, object]:
    """Another state of everything."""
    for tenant in ("main", "ada"):
        opened = app.open_kernel(Config(data=data, model=None, tenant=tenant))
        call = caller(opened.dispatch)
        assert call("memory_remember", title="later", content="later", memoryType="context").fault is None
        assert call("memory_forget", filePaths=["context/note-0.md"]).fault is None
        assert call("drop_memory", path="of").fault is None
        opened.store.close()
    assert main(["key", "create", "--scope", "read", "--data", str(data)]) == 0
    return state(data)


def test_a_backup_of_everything_comes_back_with_notes_keys_and_tenants(
    tmp_path: Path, filled: Path, caller: Bind, capsys: pytest.CaptureFixture[str]
) -> None:
    before, copy = state(filled), tmp_path / "copy"
    assert main(["backup", "--all", str(copy), "--data", str(filled)]) == 0
    later = changed(filled, caller)
    assert later != before
    capsys.readouterr()
    assert main(["restore", str(copy), "--data", str(filled)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(", schema")[0] for line in told] == [
        "main: 4 documents",
        "ada: 4 documents",
        "main: notes default: 3 files",
        "ada: notes default: 3 files",
        "1 key",
    ]
    assert state(filled) == before
    assert main(["restore", str(copy), "--data", str(tmp_path / "fresh")]) == 0
    assert state(tmp_path / "fresh") == before
    (aside,) = filled.glob("quipu-before-restore-*.db")
    assert rows(aside) == later["main"]
    capsys.readouterr()


def test_a_restore_killed_at_any_step_leaves_the_old_state_or_the_new(
    tmp_path: Path, filled: Path, caller: Bind, catalogue: Catalogue
) -> None:
    new, copy = state(filled), tmp_path / "copy"
    assert main(["backup", "--all", str(copy), "--data", str(filled)]) == 0
    old, seen = changed(filled, caller), {"old": 0, "new": 0}
    for step in range(1, 10_000, EVERY):
        data = Path(shutil.copytree(filled, tmp_path / "try"))
        interrupted = killed_at(step, data, "restore", copy, "--data", data)
        found = state(data)
        assert found in (old, new), step
        seen["new" if found == new else "old"] += 1
        shutil.rmtree(data)
        if not interrupted:
            break
    assert min(seen.values()) > 1
    told = f"{seen['old']} times the old state, {seen['new']} times the new one, never a mix"
    catalogue("R29", injected="quipu restore killed at a step", times=sum(seen.values()) - 1, outcome=told)


@pytest.mark.parametrize("everything", [False, True], ids=["FILE", "--all DIR"])
def test_a_backup_killed_at_any_step_has_no_name_and_can_be_repeated(
    tmp_path: Path, filled: Path, catalogue: Catalogue, everything: bool
) -> None:
    target, times, abandoned = tmp_path / "copies" / "copy", 0, 0
    target.parent.mkdir()
    words = ["backup", *(["--all"] if everything else []), str(target), "--data", str(filled)]
    for step in range(1, 10_000, EVERY):
        if not killed_at(step, target.parent, *words):
            break
        times += 1
        if not target.exists():
            abandoned += len(list(target.parent.iterdir()))
            assert main(words) == 0
            assert list(target.parent.iterdir()) == [target]
        assert main(["restore", str(target), "--data", str(tmp_path / "fresh")]) == 0
        assert rows(tmp_path / "fresh/quipu.db") == rows(filled / "quipu.db")
        shutil.rmtree(tmp_path / "fresh")
        shutil.rmtree(target) if everything else target.unlink()
    assert abandoned > 0 or EVERY > 1  # of a few steps, none may lie between the first byte and the name
    catalogue(
        "R30",
        injected=f"quipu {words[0]} {'--all ' * everything}killed at a step",
        times=times,
        outcome="no half copy, repeated",
    )


def test_a_restore_beside_a_server_is_refused_and_changes_nothing(
    tmp_path: Path, filled: Path, catalogue: Catalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    assert main(["backup", "--all", str(copy), "--data", str(filled)]) == 0
    with serving(filled, QUIPU_MODEL="none", QUIPU_OPEN=1) as server:
        capsys.readouterr()
        assert main(["restore", str(copy), "--data", str(filled)]) == 1
        told = f"quipu: {filled} is in use: stop the server and the clients that start one, then try again.\n"
        assert capsys.readouterr().err == told
        client = Client(server.port)
        assert client.get("/readyz") == 200
        client.close()
    assert not list(filled.glob("*before-restore*"))
    catalogue("R31", injected="quipu restore beside a server", times=1, outcome="refused, nothing changed")

"""A full disk is one line of every command, and nothing half-written is left."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel.cli.main import main

LINE = "quipu: Cannot write to storage, insufficient disk space.\n"
KILOBYTES = 200


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 200 KiB."""
    disk = tmp_path / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={KILOBYTES}k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("a disk can be mounted by root alone")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with keys and more memories than the disk takes."""
    source = tmp_path / "memory.jsonl"
    rows = (f'{{"type":"entity","name":"{n}","entityType":"x","observations":["{"x" * 9000}"]}}\n' for n in range(40))
    source.write_text("".join(rows), encoding="ascii")
    where = ["--data", str(tmp_path / "data")]
    assert main(["import", "server-memory", str(source), *where]) == 0
    assert main(["key", "create", "--scope", "read", *where]) == 0
    assert main(["backup", str(tmp_path / "copy.db"), *where]) == 0
    return tmp_path / "data"


COMMANDS: dict[str, Callable[[Path, Path], list[str]]] = {
    "export jsonl": lambda data, disk: ["export", "jsonl", str(disk / "e"), "--data", str(data)],
    "export okf": lambda data, disk: ["export", "okf", str(disk / "e"), "--data", str(data)],
    "export graph": lambda data, disk: ["export", "graph", str(disk / "e"), "--data", str(data)],
    "backup": lambda data, disk: ["backup", str(disk / "b.db"), "--data", str(data)],
    "backup --all": lambda data, disk: ["backup", "--all", str(disk / "b"), "--data", str(data)],
    "restore": lambda data, disk: ["restore", str(data.parent / "copy.db"), "--data", str(disk / "d")],
    "add": lambda _data, disk: ["add", "Tea", "--data", str(disk / "d")],
    "replica": lambda data, disk: ["replica", str(disk / "r"), "--data", str(data)],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_one_line(
    small: Path, data: Path, command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    capsys.readouterr()
    assert main(COMMANDS[command](data, small)) == 1
    errors = capsys.readouterr().err
    assert errors.splitlines(keepends=True)[-1] == LINE
    assert (errors == LINE or command == "add", "Traceback" in errors) == (True, False)
    # A journal is that of the schema, which the next start rolls back.
    kept = {"quipu.db", "quipu.db-wal", "quipu.db-shm", "quipu.db-journal", "quipu.lock"}
    kept |= {"keys.json", "replica.json", "replica.lock"}
    assert {path.name for path in small.rglob("*") if path.is_file()} <= (
        kept if command in {"add", "restore", "replica"} else set()
    )


def test_a_full_disk_leaves_the_file_of_a_client_as_it_was(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(small))
    (small / ".claude.json").write_text('{"mine": 1}\n', encoding="ascii")
    (small / "fill").write_bytes(b"x" * (KILOBYTES * 1024 - 4096))
    assert main(["setup", "--client", "claude-code", "--stdio"]) == 1
    assert capsys.readouterr().err == LINE
    assert (small / ".claude.json").read_text(encoding="ascii") == '{"mine": 1}\n'

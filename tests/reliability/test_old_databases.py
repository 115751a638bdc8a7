"""Databases made by older states of this project open with the code of today and keep everything.

Each state runs from its own commit, as `git archive` has it, over stdio: it writes through every dialect, and its
answers to the reading tools is what the code of today must answer over the same files.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The last commit with each of the newest five schemas, the newest being the one before the packages of today.
STATES = {
    "schema 6": "84de7b5",
    "schema 8": "75f9f25",
    "schema 9": "10b8f17",
    "schema 10": "db2de52",
    "schema 11": "26e9539",
}
STORES = Path(__file__).parent / "stores"
RESERVED_BYTES = 8  # of each page, which earlier releases used for its checksum
VERIFY = """
import sys
from pathlib import Path
import apsw
(library,) = (Path(apsw.__file__).parent / "sqlite_extra_binaries").glob("cksumvfs.*")
loading = apsw.Connection(":memory:")
loading.enable_load_extension(True)
loading.load_extension(str(library))
print(apsw.Connection(sys.argv[1], vfs="cksmvfs").pragma("integrity_check"))
"""
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old client", "version": "1"}}
WRITES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("add_memory", {"path": "deploy/database", "content": "The database is PostgreSQL 18."}),
    ("add_memory", {"path": "deploy/region", "content": "We deploy to Frankfurt."}),
    ("replace_memory", {"path": "deploy/region", "content": "We deploy to Zürich."}),
    ("memory_org", {"action": "create", "name": "acme"}),
    ("memory_project", {"action": "create", "name": "mill", "rootPath": "/src/mill"}),
    (
        "memory_guideline",
        {"action": "add", "scopeType": "global", "name": "errors", "content": "Name the field.", "priority": 80},
    ),
    ("save_memory", {"db": "core", "content": "The user prefers metric units.", "category": "preference"}),
    ("create_entity", {"db": "core", "name": "Ada", "type": "person"}),
    ("remember", {"session_id": "s1", "content": "Fixed the race in the queue."}),
)
READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("read_memory", {"path": "deploy/database"}),
    ("read_memory", {"path": "deploy/region"}),
    ("list_memories", {}),
    ("memory_org", {"action": "list"}),
    ("memory_project", {"action": "list"}),
    ("memory_guideline", {"action": "list", "scopeType": "global"}),
    ("get_entities", {"db": "core"}),
    ("list_recent", {}),
)


def checkout(commit: str, folder: Path) -> Path:
    """The files of a commit; the history is needed for that, so a shallow clone fails here."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    assert packed.returncode == 0, (
        f"{packed.stderr.decode()}: this test needs the whole history (git fetch --unshallow)"
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def answers(root: Path, data: Path, calls: Sequence[tuple[str, dict[str, Any]]]) -> list[Any]:
    """Return the answers of the server of a checkout to these calls, one after the other, over stdio."""
    environment = {**os.environ, "QUIPU_DATA": str(data), "PYTHONPATH": str(root)}
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel", "stdio"],
        cwd=root,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    found: list[Any] = []
    try:
        for number, (method, params) in enumerate(
            [("initialize", HELLO), *(("tools/call", named(*call)) for call in calls)]
        ):
            line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(line).encode() + b"\n")
            process.stdin.flush()
            found.append(json.loads(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.stdout.close()
        assert process.wait(60) == 0
    assert [answer.get("error") for answer in found] == [None] * len(found)
    return [answer["result"] for answer in found[1:]]


def named(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize("commit", STATES.values(), ids=STATES)
def test_databases_of_older_states_open_and_keep_everything(commit: str, tmp_path: Path) -> None:
    old, data = checkout(commit, tmp_path / "old"), tmp_path / "data"
    written = answers(old, data, WRITES)
    assert [answer.get("isError", False) for answer in written] == [False] * len(WRITES), written
    before = answers(old, data, READS)
    after = answers(ROOT, data, READS)
    assert [contents(answer) for answer in after] == [contents(answer) for answer in before]
    (found,) = answers(ROOT, data, [("recall", {"query": "which database do we use"})])
    assert "PostgreSQL 18" in json.dumps(found)
    assert checked_while_open(data) == (0, "ok\n")


@pytest.fixture
def with_checksums(tmp_path: Path) -> Path:
    """A data directory of a release that gave each page a checksum, whose server was killed."""
    with tarfile.open(STORES / "with_checksums.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "data"


def test_a_store_with_checksums_of_pages_is_served_and_exported_equal(with_checksums: Path, tmp_path: Path) -> None:
    exported = tmp_path / "now.jsonl"
    assert quipu(with_checksums, "export", "jsonl", exported).returncode == 0
    assert exported.read_bytes() == (tmp_path / "export.jsonl").read_bytes()
    writes = [("replace_memory", {"path": f"m/{number}", "content": "changed " * 200}) for number in (1, 2, 3)]
    written = answers(ROOT, with_checksums, writes)
    assert [answer.get("isError", False) for answer in written] == [False] * len(writes)
    assert quipu(with_checksums, "compact").returncode == 0
    assert quipu(with_checksums, "check").stdout == "ok\n"
    assert (with_checksums / "quipu.db").read_bytes()[20] == RESERVED_BYTES
    assert quipu(with_checksums, "backup", tmp_path / "copy.db").returncode == 0
    assert quipu(tmp_path / "other", "restore", tmp_path / "copy.db").returncode == 0
    (read,) = answers(ROOT, tmp_path / "other", [("read_memory", {"path": "m/3"})])
    assert "changed changed" in json.dumps(read)


def test_the_copy_before_the_migration_satisfies_a_release_that_verifies_checksums(with_checksums: Path) -> None:
    assert quipu(with_checksums, "check", "--repair").returncode == 0  # embeds the texts for the model of today
    (copy,) = with_checksums.glob("quipu-before-migration-from-0021-*.db")
    assert verified(copy) == (0, "ok\n")
    assert verified(with_checksums / "quipu.db")[0] != 0  # its sums are those of pages that have changed


def verified(file: Path) -> tuple[int, str]:
    """Exit status and result of an integrity check that compares each page with its checksum."""
    done = subprocess.run([sys.executable, "-c", VERIFY, file], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def quipu(data: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    """Run a command on a data directory."""
    command = [sys.executable, "-m", "kernel", *map(str, words), "--data", str(data)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def checked_while_open(data: Path) -> tuple[int, str]:
    """Exit status and output of `quipu check`, beside a server that is given a minute to embed outdated rows."""
    command, environment = [sys.executable, "-m", "kernel"], {**os.environ, "QUIPU_DATA": str(data)}
    with subprocess.Popen([*command, "stdio"], cwd=ROOT, env=environment, stdin=subprocess.PIPE) as server:
        deadline = time.monotonic() + 60
        while True:
            done = subprocess.run(
                [*command, "check"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            if done.stdout == "ok\n" or time.monotonic() > deadline:
                break
        assert server.stdin
        server.stdin.close()
    return done.returncode, done.stdout + done.stderr


def contents(answer: dict[str, Any]) -> list[Any]:
    """Return the content of an answer: JSON as data, which newer states write compactly, without totals of lists."""
    return [content(block["text"]) for block in answer["content"]]


def content(text: str) -> Any:
    found = json.loads(text) if text.startswith(("{", "[")) else text
    return {name: value for name, value in found.items() if name != "meta"} if isinstance(found, dict) else found

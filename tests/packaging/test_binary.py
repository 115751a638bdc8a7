"""The folder and the single file run where there is no Python, nothing may be written, and nothing else is."""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.packaging.programs import environment, running
from tests.reliability.server_process import PATIENCE, ROOT
from tests.support.server_process_activation import ask, connected, status

pytestmark = pytest.mark.ship
FOLDER, FILE = ROOT / "dist" / "quipu", ROOT / "dist" / "quipu.run"
PROGRAM = FOLDER / "quipu"
FILE_MB, FOLDER_MB = 80, 95
MEMORY = ("motor/日本", "My automobile goes to the garage in May.", "vehicle maintenance")
as_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may mount and change its root")


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Both forms are there."""
    assert PROGRAM.exists(), "make binary builds it"
    assert FILE.exists(), "make binary builds it"


def root_of(folder: Path) -> Path:
    """A root with the program, its C library, and nothing else."""
    subprocess.run([ROOT / ".ci" / "ship" / "root", FOLDER, folder], check=True)
    return folder


def root_of_file(folder: Path) -> Path:
    """A root with the single file alone."""
    for name in ("data", "tmp"):
        (folder / name).mkdir(parents=True)
    shutil.copy(FILE, folder / FILE.name)
    return folder


def root_with_another_c_library(folder: Path) -> Path:
    """A root with the single file beside a C library that it could not use."""
    root_of_file(folder)
    for name in ("lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu/libc.so.6", "lib/ld-musl-x86_64.so.1"):
        library = folder / name
        library.parent.mkdir(parents=True, exist_ok=True)
        library.write_bytes(b"of another system")
    return folder


def confined(root: Path, data: Path, program: str) -> list[str]:
    """Runs `program` with that root, read-only but for /data, and a /tmp that nothing may run from."""
    mounts = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount --bind "$1" "$0/data" && shift'
    mounts += ' && mount -t tmpfs -o noexec tmpfs "$0/tmp" && exec chroot "$0" "$@"'
    return ["unshare", "--mount", "sh", "-c", mounts, str(root), str(data), program]


def unpacked(folder: Path) -> list[Path]:
    """Return the files in the folder into which the file unpacks itself."""
    return sorted(folder.iterdir())


def version(**more: str) -> subprocess.CompletedProcess[str]:
    """One run of the file."""
    return subprocess.run(
        [FILE, "--version"], env=environment(**more), capture_output=True, text=True, timeout=PATIENCE
    )


def test_the_forms_are_small() -> None:
    assert FILE.stat().st_size / 1e6 <= FILE_MB
    files = [file for file in FOLDER.rglob("*") if file.is_file() and not file.is_symlink()]
    assert sum(file.stat().st_size for file in files) / 1e6 <= FOLDER_MB


@pytest.mark.parametrize("arguments", [["tools"], ["tools", "--tokens"], ["--help"]])
def test_it_says_what_the_clone_says(arguments: list[str]) -> None:
    def printed(*command: str) -> str:
        return subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True).stdout

    assert printed(str(PROGRAM), *arguments) == printed(sys.executable, "-m", "kernel", *arguments)


@as_root
@pytest.mark.parametrize(
    ("make_root", "program"),
    [(root_of, "/quipu/quipu"), (root_of_file, "/quipu.run"), (root_with_another_c_library, "/quipu.run")],
    ids=["folder", "file", "file beside another C library"],
)
def test_it_works_in_an_empty_read_only_root(make_root: Callable[[Path], Path], program: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    command = confined(make_root(tmp_path / "root"), data, program)
    settings = {"QUIPU_UNPACK_DIR": "/data/unpacked"}
    with running(command, "/data/memories", tmp_path / "log", **settings) as server:
        assert server.remembers(*MEMORY)
        backup = [*command, "backup", "/data/copy.db", "--data", "/data/memories"]
        subprocess.run(backup, env=environment(**settings), check=True)
        server.process.kill()
    assert (data / "copy.db").stat().st_size
    with running(command, "/data/memories", tmp_path / "log", **settings) as server:
        assert server.finds(MEMORY[0], MEMORY[2])
        assert server.stop() == 0


def test_the_file_is_a_program_that_needs_no_library() -> None:
    """Its first bytes name an ELF file; none of its segments (type 3) names a program that loads libraries."""
    start = FILE.read_bytes()[:4096]
    assert start[:5] == b"\x7fELF\x02"
    at, size, count = struct.unpack("<Q", start[32:40])[0], *struct.unpack("<HH", start[54:58])
    types = [struct.unpack("<I", start[at + number * size :][:4])[0] for number in range(count)]
    assert 1 in types
    assert 3 not in types


def test_every_command_runs_and_the_data_is_that_of_any_other_form(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running([sys.executable, "-m", "kernel"], data) as server:
        server.add("car", "My automobile goes to the garage in May.")
        assert server.stop() == 0

    def command(*arguments: str) -> str:
        program = [PROGRAM, *arguments, "--data", str(data)]
        return subprocess.run(program, env=environment(), capture_output=True, text=True, check=True).stdout

    assert command("check") == "ok\n"
    assert command("reindex") == "1 vector rebuilt\n"
    assert command("backup", str(tmp_path / "copy.db")) == f"{tmp_path / 'copy.db'}\n"
    with running([str(PROGRAM)], data) as server:
        assert server.finds("car", "vehicle maintenance")
        health = [PROGRAM, "health", "--port", str(server.port)]
        assert subprocess.run(health, env=environment()).returncode == 0
        assert server.stop() == 0
        assert subprocess.run(health, env=environment(), capture_output=True).returncode == 1


def test_it_speaks_over_standard_input_and_output(tmp_path: Path) -> None:
    client = {"name": "test", "version": "1"}
    asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked})
    command = [PROGRAM, "stdio", "--data", str(tmp_path / "data")]
    done = subprocess.run(command, input=f"{line}\n", env=environment(), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-11-25"


def test_the_first_starters_at_once_unpack_one_folder(tmp_path: Path) -> None:
    where = tmp_path / "unpacked"
    command = [str(FILE), "--version"]
    starters = [
        subprocess.Popen(command, env=environment(QUIPU_UNPACK_DIR=str(where)), stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    said = {starter.communicate(timeout=PATIENCE)[0] for starter in starters}
    assert said == {subprocess.run([PROGRAM, "--version"], capture_output=True, check=True).stdout}
    [home] = unpacked(where)
    before = home.stat().st_mtime_ns, home.stat().st_ino
    assert version(QUIPU_UNPACK_DIR=str(where)).returncode == 0
    assert (home.stat().st_mtime_ns, home.stat().st_ino) == before
    assert unpacked(where) == [home]


def test_the_cache_of_the_user_is_where_it_unpacks_by_itself(tmp_path: Path) -> None:
    assert version(HOME=str(tmp_path), XDG_CACHE_HOME="").returncode == 0
    assert len(unpacked(tmp_path / ".cache" / "quipu")) == 1
    assert version(HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "other")).returncode == 0
    assert len(unpacked(tmp_path / "other" / "quipu")) == 1
    nowhere = version(HOME="", XDG_CACHE_HOME="", QUIPU_UNPACK_DIR="")
    assert (nowhere.returncode, nowhere.stdout, nowhere.stderr.count("\n")) == (1, "", 1)
    assert "QUIPU_UNPACK_DIR" in nowhere.stderr


def test_a_file_cut_short_leaves_nothing_behind(tmp_path: Path) -> None:
    short = tmp_path / "short.run"
    short.write_bytes(FILE.read_bytes()[:-100_000])
    short.chmod(0o755)
    where = tmp_path / "unpacked"
    command = [str(short), "--version"]
    done = subprocess.run(command, env=environment(QUIPU_UNPACK_DIR=str(where)), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"quipu: {short} is cut short\n")
    assert not where.exists()


def test_a_damaged_file_leaves_nothing_behind(tmp_path: Path) -> None:
    damaged, content = tmp_path / "damaged.run", bytearray(FILE.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    damaged.chmod(0o755)
    where = tmp_path / "unpacked"
    done = subprocess.run([damaged, "--version"], env=environment(QUIPU_UNPACK_DIR=str(where)), capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(f"quipu: cannot unpack into {where}")
    assert unpacked(where) == []


@pytest.fixture
def noexec(tmp_path: Path) -> Iterator[Path]:
    """A folder that no program may run from."""
    folder = tmp_path / "noexec"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@as_root
def test_a_folder_no_program_may_run_from_is_named(noexec: Path) -> None:
    done = version(QUIPU_UNPACK_DIR=str(noexec))
    line = f"quipu: no program may run from {noexec}; QUIPU_UNPACK_DIR may name another folder\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = version(QUIPU_UNPACK_DIR=str(tmp_path / "file" / "folder"))
    line = f"quipu: cannot write to {tmp_path}/file/folder; QUIPU_UNPACK_DIR may name another folder\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_it_keeps_the_process_that_was_given_a_socket(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, connected(listener.getsockname()[1]) as client:
        ask(client)
        shell = f'exec 3<&{listener.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
        settings = environment(QUIPU_IDLE_EXIT="1", QUIPU_UNPACK_DIR=str(tmp_path / "unpacked"))
        server = subprocess.Popen(
            ["bash", "-c", shell, "sh", FILE, "serve", "--data", str(tmp_path / "data")],
            pass_fds=[listener.fileno()],
            env=settings,
        )
        try:
            assert status(client) == 200
            assert server.wait(PATIENCE) == 0
        finally:
            server.kill()
            server.wait(PATIENCE)


def test_a_client_is_set_up_to_start_the_file_and_not_what_it_was_unpacked_to(tmp_path: Path) -> None:
    settings = environment(HOME=str(tmp_path), QUIPU_UNPACK_DIR=str(tmp_path / "unpacked"))
    asked = [str(FILE), "setup", "--client", "cursor", "--stdio", "--print"]
    done = subprocess.run(asked, env=settings, capture_output=True, text=True, check=True)
    assert f'"command": "{FILE}"' in done.stdout

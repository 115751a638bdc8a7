"""A file that is not ordinary is refused at once by every command, and so is one without an end."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel.cli.main import main
from kernel.core.ordinary_files import open_ordinary, read_bytes
from tests.unit.cli.conftest import Quipu, home, quipu  # noqa: F401  a fixture is known by its name here

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """A command that waits for a pipe is interrupted, and its test fails."""

    def end(*_: object) -> None:
        raise TimeoutError("the command hangs")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        try:
            bound.bind(path.name)
        finally:
            os.chdir(here)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


SHAPES: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": bind,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "random": lambda path: path.symlink_to("/dev/urandom"),
    "full": lambda path: path.symlink_to("/dev/full"),
    "circle": lambda path: path.symlink_to(path.name),
    "huge": sparse,
    "deep": lambda path: path.write_text("[" * 200_000, encoding="ascii"),
    "deep objects": lambda path: path.write_text('{"a":' * 200_000, encoding="ascii"),
    "digits": lambda path: path.write_text('{"format":%s}' % ("9" * 10_000), encoding="ascii"),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 64),
    "folder": os.mkdir,
}
CLIENTS = {"claude-code": ".claude.json", "codex": ".codex/config.toml", "zed": ".config/zed/settings.json"}
shapes = pytest.mark.parametrize("shape", SHAPES)


@pytest.fixture
def data(home: Path, tmp_path: Path) -> Iterator[Path]:  # noqa: F811
    """A data directory with one memory, and nobody at its address."""
    assert main(["add", "Tea", "--data", str(tmp_path / "data")]) == 0
    return tmp_path / "data"  # type: ignore[return-value]


def one_line(output: tuple[int, str, str]) -> bool:
    """Whether a command has failed in one line."""
    status, _, errors = output
    return (status, errors.count("\n"), "Traceback" in errors) == (1, 1, False)


@shapes
def test_a_file_that_is_none_is_an_error_of_the_system(tmp_path: Path, shape: str) -> None:
    SHAPES[shape](tmp_path / "file")
    if shape in {"deep", "deep objects", "digits", "binary"}:
        assert read_bytes(tmp_path / "file") == (tmp_path / "file").read_bytes()
        with pytest.raises(OSError, match="more than 0 MiB"):
            read_bytes(tmp_path / "file", 16)
        return
    with pytest.raises(OSError, match=r"ordinary|MiB|directory|[Ll]evels|No such device"):
        read_bytes(tmp_path / "file")
    if shape == "huge":
        open_ordinary(tmp_path / "file").close()


@shapes
@pytest.mark.parametrize("client", CLIENTS)
def test_the_file_of_a_client(data: Path, home: Path, quipu: Quipu, client: str, shape: str) -> None:  # noqa: F811
    file = home / CLIENTS[client]
    file.parent.mkdir(parents=True, exist_ok=True)
    SHAPES[shape](file)
    for words in (["--stdio", "--data", str(data)], ["--remove"]):
        assert one_line(quipu("setup", "--client", client, *words)) or (shape == "folder" and client == "zed"), words
    for words in (["setup"], ["hook", "status"], ["doctor", "--data", str(data)]):
        assert "Traceback" not in quipu(*words)[2]
    assert os.path.lexists(file)


@shapes
def test_the_file_of_hooks(data: Path, home: Path, quipu: Quipu, shape: str) -> None:  # noqa: F811
    file = home / ".claude" / "settings.json"
    file.parent.mkdir(parents=True)
    SHAPES[shape](file)
    status, _, errors = quipu("setup", "--client", "claude-code", "--hooks", "recall")
    assert (status, "Traceback" in errors) == (1, False)
    assert one_line(quipu("hook", "remove", "--client", "claude-code"))
    assert quipu("hook", "status")[0] == 0


@shapes
def test_the_source_of_a_restore(data: Path, quipu: Quipu, tmp_path: Path, shape: str) -> None:  # noqa: F811
    SHAPES[shape](tmp_path / "source")
    (tmp_path / "all").mkdir()
    SHAPES[shape](tmp_path / "all" / "manifest.json")
    before = {path: path.read_bytes() for path in data.iterdir()}
    for source in ("source", "all"):
        assert one_line(quipu("restore", str(tmp_path / source), "--data", str(data))), source
    assert {path: path.read_bytes() for path in data.iterdir()} == before


@shapes
def test_the_keys_of_a_data_directory(data: Path, quipu: Quipu, tmp_path: Path, shape: str) -> None:  # noqa: F811
    SHAPES[shape](data / "keys.json")
    where = ["--data", str(data)]
    for words in (["key", "list"], ["key", "create", "--scope", "read"], ["backup", "--all", str(tmp_path / "copy")]):
        output = quipu(*words, *where)
        assert one_line(output) or words[0] == "backup", words
        assert "Traceback" not in output[2]
    assert "Traceback" not in quipu("doctor", *where)[2]


@shapes
def test_the_mark_of_a_replica(data: Path, quipu: Quipu, shape: str) -> None:  # noqa: F811
    SHAPES[shape](data / "replica.json")
    for words in (["list"], ["add", "more"], ["doctor"]):
        assert "Traceback" not in quipu(*words, "--data", str(data))[2]


@shapes
@pytest.mark.parametrize("name", ["quipu.lock", "quipu.db-shm", "quipu.db"])
def test_a_file_of_the_engine(data: Path, quipu: Quipu, name: str, shape: str) -> None:  # noqa: F811
    (data / name).unlink(missing_ok=True)
    SHAPES[shape](data / name)
    for words in (["list"], ["audit"], ["check"], ["quarantine"], ["export", "jsonl", str(data / "export")]):
        assert "Traceback" not in quipu(*words, "--data", str(data))[2], words

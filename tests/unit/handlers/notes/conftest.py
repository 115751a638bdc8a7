"""A project in the temporary data directory, and calls that must change nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.calls.tools import Reply
from kernel.core.config import Config
from kernel.server.app import Kernel
from tests.conftest import Call, everything

Tree = dict[str, tuple[int, bytes | str]]
CallOk = Callable[..., dict[str, Any]]


@pytest.fixture
def folder(config: Config) -> Path:
    """Where the files of the default project lie."""
    return config.data / "notes" / ".mnemonics"


@pytest.fixture
def call_ok(call: Call) -> CallOk:
    """`call_ok("memory_recall", ...)` is the answer of a call that must succeed."""

    def run(name: str, **arguments: Any) -> dict[str, Any]:
        reply = call(name, **arguments)
        assert reply.fault is None, reply.body
        assert reply.body == reply.structured
        return msgspec.json.decode(reply.body)

    return run


@pytest.fixture
def unchanged(kernel: Kernel, call: Call, tmp_path: Path) -> Callable[..., Reply]:
    """A call that must leave no trace in the store or in any file, inside the project or around it; its reply."""

    def same(name: str, **arguments: Any) -> Reply:
        rows, contents = everything(kernel), tree(tmp_path)
        reply = call(name, **arguments)
        assert everything(kernel) == rows
        assert tree(tmp_path) == contents
        return reply

    return same


def tree(top: Path) -> Tree:
    """Mode and content of everything below a folder, but for the store itself."""
    found: Tree = {}
    for path in sorted(top.rglob("*")):
        if not path.name.startswith("quipu.db"):
            what = str(path.readlink()) if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
            found[str(path.relative_to(top))] = (path.lstat().st_mode, what)
    return found


def files(folder: Path) -> list[str]:
    """The paths of all files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def put(folder: Path, path: str, text: str | bytes) -> Path:
    """A file written by hand."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def titles(answer: dict[str, Any]) -> list[str]:
    """The titles of a recall, in its order."""
    return [memory["title"] for memory in answer["memories"]]

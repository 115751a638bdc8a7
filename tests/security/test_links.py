"""Nothing outside a project is read or touched by way of a link in it, be it hard or made in between."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel.calls.tools import Reply
from kernel.core.config import Config
from tests.catalogue import Catalogue
from tests.conftest import Call

SECRET = "root:x:0:0"


@pytest.fixture
def inside(config: Config) -> Path:
    """The folder of one type of memories."""
    folder = config.data / "notes" / ".mnemonics" / "learning"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that is nobody's memory."""
    file = tmp_path / "outside.md"
    file.write_text(SECRET)
    return file


def told(reply: Reply) -> Any:
    return msgspec.json.decode(reply.body) if reply.fault is None else reply.body


LINKS: dict[str, Callable[[Path, Path], object]] = {
    "a link to a file": lambda inside, outside: (inside / "a.md").symlink_to(outside),
    "a link to a link": lambda inside, outside: [
        (inside / ".hop").symlink_to(outside),
        (inside / "a.md").symlink_to(".hop"),
    ],
    "a link to a folder": lambda inside, outside: [inside.rmdir(), inside.symlink_to(outside.parent)],
    "a link out by dots": lambda inside, outside: (inside / "a.md").symlink_to(os.path.relpath(outside, inside)),
}


@pytest.mark.parametrize("kind", LINKS)
def test_a_link_leads_nobody_out(call: Call, inside: Path, outside: Path, kind: str, catalogue: Catalogue) -> None:
    LINKS[kind](inside, outside)
    name = "outside.md" if kind == "a link to a folder" else "a.md"
    for path in (str(inside / name), f"learning/{name}", f"qmd://learning/{name}"):
        update = call("memory_remember", title="x", content="new", memoryType="learning", filePath=path)
        assert update.fault in {"blocked", "invalid", "not_found"}, (kind, path, update)
        assert told(call("memory_forget", filePaths=[path]))["deletedCount"] == 0
    shown = call("memory_recall", isAll=True, limit=1000)
    assert SECRET.encode() not in shown.body
    assert outside.read_text() == SECRET
    catalogue("S14", injected=kind, times=7, outcome="not followed")


def test_what_else_a_hard_link_names_is_neither_changed_nor_deleted(
    call: Call, inside: Path, outside: Path, catalogue: Catalogue
) -> None:
    for name in ("a.md", "b.md"):
        (inside / name).hardlink_to(outside)
    told(call("memory_remember", title="x", content="new", memoryType="learning", filePath="learning/a.md"))
    assert told(call("memory_forget", filePaths=["learning/b.md"]))["deletedCount"] == 1
    assert outside.read_text() == SECRET
    assert [path.name for path in inside.iterdir()] == ["a.md"]
    catalogue("S14", injected="hard links to a file", times=2, outcome="replaced and deleted here alone")

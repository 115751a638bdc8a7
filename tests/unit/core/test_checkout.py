"""Files of a folder that somebody else has made: reads, refusals and their reasons, with and without `dir_fd`."""

import os
from pathlib import Path

import pytest

from kernel.core import checkout
from kernel.core.checkout import Refused, read, read_text


@pytest.fixture(params=[True, False], ids=["dir_fd", "paths"], autouse=True)
def by_descriptor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways, of which Windows has the second alone."""
    if request.param and os.open not in os.supports_dir_fd:
        pytest.skip("this system opens no file below a descriptor")
    monkeypatch.setattr(checkout, "_HAS_DIR_FD", request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file in a folder, and one with a secret beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("secret", encoding="utf-8")
    (tmp_path / "root" / "f").mkdir(parents=True)
    (tmp_path / "root" / "f" / "a.md").write_text("text", encoding="utf-8")
    return tmp_path / "root"


def test_an_ordinary_file_is_read_up_to_a_bound(root: Path) -> None:
    assert read(str(root), "f/a.md", 2) == b"te"
    assert read_text(str(root), "f/a.md", 100) == "text"
    root.rename(root.with_name("moved"))
    root.symlink_to(root.with_name("moved"))  # the root itself is the user's choice
    assert read_text(str(root), "f/a.md", 100) == "text"


@pytest.mark.skipif(os.name == "nt", reason="links and pipes are not for everybody there")
def test_what_leads_out_or_is_no_file_is_refused(root: Path) -> None:
    (root / "link").symlink_to("f/a.md")
    (root / "folder").symlink_to(root.parent / "outside")
    (root / "hard").hardlink_to(root.parent / "outside" / "a.md")
    os.mkfifo(root / "pipe")
    for name, reason in {
        "link": "a link",
        "folder/a.md": "a link",
        "folder": "a link",
        "hard": "a hard link",
        "pipe": "no ordinary file",
        "f": "no ordinary file",
        "f/../f/a.md": "a path that leads out",
        "../outside/a.md": "a path that leads out",
        "/etc/passwd": "a path that leads out",
        "f//a.md": "a path that leads out",
        "": "a path that leads out",
    }.items():
        with pytest.raises(Refused, match=f"^{reason}$"):
            read(str(root), name, 100)


@pytest.mark.parametrize("name", ["none", "none/a.md", "f/none", "f/a.md/x"])
def test_a_missing_file_is_an_error_of_the_system(root: Path, name: str) -> None:
    with pytest.raises((FileNotFoundError, NotADirectoryError)):
        read(str(root), name, 100)


@pytest.mark.parametrize(
    "data", [b"A\0B", b"\x1b[2J", b"a\x7f", "\x85".encode(), "\u202ea".encode(), "\u2066".encode()]
)
def test_a_text_has_no_control_characters(root: Path, data: bytes) -> None:
    (root / "a").write_bytes(data)
    with pytest.raises(Refused, match="control characters"):
        read_text(str(root), "a", 100)


def test_a_text_is_utf_8_and_may_be_cut_inside_a_character(root: Path) -> None:
    (root / "a").write_bytes("\ufeffé\t\r\n\u200d🙂".encode())
    assert read_text(str(root), "a", 100) == "é\t\r\n\u200d🙂"
    assert read_text(str(root), "a", 12) == "é\t\r\n\u200d"
    (root / "a").write_bytes(b"abc\xff" + b"x" * 20)
    with pytest.raises(Refused, match="no UTF-8 text"):
        read_text(str(root), "a", 10)
    (root / "a").write_bytes(b"abc\xc3")
    with pytest.raises(Refused, match="no UTF-8 text"):
        read_text(str(root), "a", 100)

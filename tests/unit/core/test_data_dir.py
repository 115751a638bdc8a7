"""Each tenant has its own folder, private to the user."""

import errno
import os
import sys
from pathlib import Path

import pytest

from kernel.core.data_dir import fsync_folder, home, make_private, replace
from kernel.core.errors import Fault

DATA = Path("/data")
WRONG = [
    "",
    ".",
    "..",
    "../main",
    "a/b",
    "a\\b",
    "/etc",
    "-a",
    "_a",
    "A",
    "ä",
    "a b",
    "a\0",
    "a\n",
    "a.db",
    "~",
    "a" * 64,
    "%2e%2e",
    "．．",
    "c:",
]


def test_main_tenant_uses_the_data_directory_and_others_a_folder_in_it() -> None:
    assert home(DATA, "main") == DATA
    assert home(DATA, "acme") == DATA / "tenants" / "acme"
    assert home(DATA, "a" * 63) == DATA / "tenants" / ("a" * 63)


@pytest.mark.parametrize("name", WRONG)
def test_tenant_name_with_a_path_is_refused(name: str) -> None:
    with pytest.raises(Fault) as raised:
        home(DATA, name)
    assert raised.value.code == "invalid"


def test_folders_are_private_with_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "one" / "two" / "three")
        make_private(tmp_path / "one" / "two" / "three")
    finally:
        os.umask(before)
    made = [tmp_path / "one", tmp_path / "one" / "two", tmp_path / "one" / "two" / "three"]
    assert [oct(folder.stat().st_mode & 0o777) for folder in made] == ["0o700"] * 3


def test_file_in_place_of_a_folder_is_a_storage_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "below"
    with pytest.raises(Fault) as raised:
        make_private(below)
    message = f"Cannot use the data directory {below}: {tmp_path / 'file'} is not a folder"
    assert (raised.value.code, raised.value.message) == ("storage", message)


def test_fsync_empties_the_cache_of_the_drive_on_macos(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []
    refused = False

    def full(descriptor: int, command: int) -> None:
        seen.append(("full", command))
        if refused:
            raise OSError(errno.ENOTSUP, "")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("fcntl.F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr("fcntl.fcntl", full)
    monkeypatch.setattr("os.fsync", lambda descriptor: seen.append(("plain", 0)))
    fsync_folder(tmp_path)
    refused = True
    fsync_folder(tmp_path)
    assert seen == [("full", 51), ("full", 51), ("plain", 0)]


@pytest.mark.parametrize(
    ("platform", "refusals", "replaced"), [("win32", 3, True), ("win32", 9, False), ("linux", 1, False)]
)
def test_a_file_that_is_open_on_windows_is_replaced_once_it_is_closed(
    platform: str, refusals: int, replaced: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old, new = tmp_path / "keys.json", tmp_path / "keys.lock"
    old.write_text("old")
    new.write_text("new")
    rename, clock = Path.replace, iter(range(100))
    left = refusals

    def sharing_violation(source: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if left >= 0:
            raise PermissionError(errno.EACCES, "in use")
        return rename(source, target)

    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "replace", sharing_violation)
    monkeypatch.setattr("time.monotonic", lambda: next(clock) / 2)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    if replaced:
        replace(new, old)
    else:
        with pytest.raises(PermissionError):
            replace(new, old)
    assert old.read_text() == ("new" if replaced else "old")

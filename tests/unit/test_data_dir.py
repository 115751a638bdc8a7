"""Each tenant has its own folder, private to the user."""

import os
from pathlib import Path

import pytest

from kernel.data_dir import home, make_private
from kernel.errors import Fault

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
    with pytest.raises(Fault, match="Cannot use the data directory") as raised:
        make_private(tmp_path / "file" / "below")
    assert raised.value.code == "storage"

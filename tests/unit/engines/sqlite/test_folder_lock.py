"""A folder is shared by many, or belongs to one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel.core.errors import Fault
from kernel.engines.sqlite import folder_lock
from kernel.engines.sqlite.folder_lock import NAME, FolderLock


@pytest.fixture
def locks(tmp_path: Path) -> Iterator[list[FolderLock]]:
    made = [FolderLock(tmp_path) for _ in range(3)]
    yield made
    for lock in made:
        lock.close()


def test_shared_locks_exclude_an_exclusive_one_and_the_other_way_round(locks: list[FolderLock]) -> None:
    first, second, third = locks
    assert (first.take("shared"), second.take("shared"), third.take("exclusive")) == (True, True, False)
    first.close()
    second.release()
    assert (third.take("exclusive"), second.take("shared"), second.held) == (True, False, None)


def test_the_first_to_enter_is_alone_until_it_shares(locks: list[FolderLock], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "_WAIT_SECONDS", 0.1)
    first, second, third = locks
    assert first.enter()
    with pytest.raises(Fault, match="Another process is opening or restoring") as busy:
        second.enter()
    assert busy.value.code == "busy"
    assert first.take("shared")
    assert not second.enter()
    first.close()
    second.release()
    assert third.enter()


def test_a_lock_ends_with_its_process_and_leaves_an_empty_file(tmp_path: Path, locks: list[FolderLock]) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from kernel.engines.sqlite.folder_lock import FolderLock; "
        "lock = FolderLock(Path(sys.argv[1])); assert lock.take('exclusive'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    assert locks[0].take("exclusive")
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [(NAME, 0)]


def test_a_folder_that_is_not_there_is_a_storage_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"Cannot use the data directory .*absent: No such file") as refused:
        FolderLock(tmp_path / "absent")
    assert refused.value.code == "storage"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems take no such name")
def test_a_folder_of_which_the_name_is_no_text_is_a_storage_fault(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xe9t\xe9")
    folder.mkdir()
    with pytest.raises(Fault, match=r"Cannot use the data directory .*: its name is not UTF-8"):
        FolderLock(folder)

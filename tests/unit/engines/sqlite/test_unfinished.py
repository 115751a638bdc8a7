"""A file appears when it is whole, and a folder too; abandoned files go, those being written stay."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernel.core.errors import Fault
from kernel.engines.sqlite.unfinished import finish, unfinished

ROOT = Path(__file__).resolve().parents[4]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_target_appears_when_it_is_finished(tmp_path: Path) -> None:
    for target, make in ((tmp_path / "file", Path.touch), (tmp_path / "folder", Path.mkdir)):
        with unfinished(target) as part:
            make(part)
            assert not target.exists()
            finish(part, target)
    assert names(tmp_path) == ["file", "folder"]


def write_and_fail(target: Path) -> None:
    with unfinished(target) as part:
        part.write_text("half")
        raise ValueError("broken")


def write_too_late(target: Path) -> None:
    with unfinished(target) as part:
        part.touch()
        target.write_text("precious")
        finish(part, target)


def test_nothing_is_left_of_what_is_not_finished(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="broken"):
        write_and_fail(tmp_path / "file")
    assert names(tmp_path) == []


def test_name_that_is_taken_is_a_conflict_before_and_after(tmp_path: Path) -> None:
    target = tmp_path / "file"
    for attempt in (write_too_late, write_and_fail):
        with pytest.raises(Fault, match="file exists already") as refused:
            attempt(target)
        assert (refused.value.code, target.read_text(), names(tmp_path)) == ("conflict", "precious", ["file"])


def test_what_a_killed_process_left_goes_and_what_another_writes_stays(tmp_path: Path) -> None:
    left = tmp_path / "old.0123abcd.quipu-unfinished"
    left.mkdir()
    (left / "old").write_text("half")
    (tmp_path / "users.unfinished").touch()
    with unfinished(tmp_path / "first") as first:
        first.touch()
        with unfinished(tmp_path / "second") as second:
            assert [path.exists() for path in (left, first.parent, second.parent)] == [False, True, True]
    assert names(tmp_path) == ["users.unfinished"]


def test_folder_that_cannot_be_written_to_is_a_storage_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"^Cannot write .*absent/file: No such file"), unfinished(tmp_path / "absent/file"):
        pass


MANY_FOLDERS = """
import sys
from pathlib import Path
from kernel.engines.sqlite.unfinished import temporary_folder
for _ in range(150):
    with temporary_folder(Path(sys.argv[1])):
        pass
"""


@pytest.mark.slow
def test_processes_that_delete_what_another_left_do_not_stop_those_that_write_beside_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MANY_FOLDERS, str(tmp_path / "file")]
    processes = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [("", 0)] * 4
    assert names(tmp_path) == []

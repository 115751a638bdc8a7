"""The output of `quipu backup` and `quipu restore`, and their refusals."""

from pathlib import Path

import pytest

from kernel.cli.main import main
from kernel.server import app
from kernel.server.app import Kernel
from tests.conftest import Call


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_backup_to_a_file_says_what_it_leaves_out_and_how_to_have_all(
    kernel: Kernel, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(kernel.config.data)
    assert main(["backup", str(tmp_path / "1.db"), "--data", data]) == 0
    assert told(capsys) == []
    call("memory_remember", title="one", content="two", memoryType="context")
    app.open_tenant(kernel, "ada").store.close()
    assert main(["key", "create", "--scope", "read", "--data", data]) == 0
    told(capsys)
    assert main(["backup", str(tmp_path / "2.db"), "--data", data]) == 0
    left_out = "not in this copy: the files of notes, the keys, other tenants"
    assert told(capsys) == [f"{left_out}; `quipu backup --all DIR` copies everything"]


def test_backup_of_everything_takes_no_file_and_no_tenant(
    kernel: Kernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([str(tmp_path / "1.db")], ["--tenant", "ada"]):
        words = ["backup", "--all", str(tmp_path / "all"), *more, "--data", str(kernel.config.data)]
        assert main(words) == 1
        assert told(capsys)[-1].startswith("quipu: ")
    assert list(tmp_path.glob("all*")) == []


def test_restore_says_what_came_back_and_which_settings_differ(
    kernel: Kernel, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call("memory_remember", title="one", content="two", memoryType="context")
    monkeypatch.setenv("QUIPU_GROUP", "7")
    assert main(["backup", "--all", str(tmp_path / "all"), "--data", str(kernel.config.data)]) == 0
    monkeypatch.setenv("QUIPU_GROUP", "8")
    capsys.readouterr()
    assert main(["restore", str(tmp_path / "all"), "--data", str(tmp_path / "fresh")]) == 0
    out, err = capsys.readouterr()
    first, *others = out.splitlines()
    assert first.startswith("main: 1 documents, schema ")
    assert others == ["main: notes default: 1 files", "no keys in this backup: those that are there stay"]
    assert err.splitlines() == [
        "QUIPU_GROUP was '7' when the backup was made",
        "what was there is kept beside it, in names with -before-restore-",
    ]


def test_restore_of_notes_whose_folder_is_not_configured_says_where_they_are(
    kernel: Kernel, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call("memory_remember", title="one", content="two", memoryType="context")
    copy = tmp_path / "all"
    assert main(["backup", "--all", str(copy), "--data", str(kernel.config.data)]) == 0
    monkeypatch.setenv("QUIPU_NOTES_ROOTS", f"web={tmp_path / 'web'}")
    capsys.readouterr()
    assert main(["restore", str(copy), "--data", str(tmp_path / "fresh")]) == 0
    line = "main: notes default: not restored, as no such folder is configured; it is in"
    assert f"{line} {copy / 'folders/notes-1'}" in capsys.readouterr().out.splitlines()


def test_folders_outside_the_data_directory_come_back_where_they_were(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "web/.mnemonics/context/one.md"
    note.parent.mkdir(parents=True)
    note.write_text("as it was")
    monkeypatch.setenv("QUIPU_NOTES_ROOTS", f"web={tmp_path / 'web'}")
    assert main(["backup", "--all", str(tmp_path / "all"), "--data", str(kernel.config.data)]) == 0
    note.write_text("changed")
    kernel.store.close()
    assert main(["restore", str(tmp_path / "all"), "--data", str(kernel.config.data)]) == 0
    assert note.read_text() == "as it was"
    (aside,) = (tmp_path / "web").glob(".mnemonics-before-restore-*")
    assert (aside / "context/one.md").read_text() == "changed"
    assert sorted(path.name for path in (tmp_path / "web").iterdir()) == [".mnemonics", aside.name]

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
    assert first.startswith("main: 1 document, schema ")
    assert others == ["main: notes default: 1 file", "no keys in this backup"]
    ready = f"{tmp_path / 'fresh'} is ready: start the server again"
    assert err.splitlines() == ["QUIPU_GROUP was '7' when the backup was made", ready]
    assert main(["restore", str(tmp_path / "all"), "--data", str(tmp_path / "fresh")]) == 0
    kept = "what was there is kept beside it, in names with -before-restore-"
    assert capsys.readouterr().err.splitlines()[1:] == [kept, ready]


def test_restore_of_no_backup_names_the_next_step(
    kernel: Kernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, dated, empty = kernel.config.data, tmp_path / "dated", tmp_path / "empty"
    empty.mkdir()
    assert main(["backup", "--to", str(dated), "--data", str(data)]) == 0
    (newest,) = dated.iterdir()
    missing = "is no backup: manifest.json is missing."
    for source, message in (
        (
            empty,
            f"{empty} {missing} Name a folder that `quipu backup --all` or `--to` has made, or a copy of a database.",
        ),
        (dated, f"{dated} {missing} Name one of its backups, such as {newest}."),
        (data, f"{data} {missing} It is a data directory: name the database in it, {data / 'quipu.db'}."),
        (tmp_path / "none", f"There is no file and no folder {tmp_path / 'none'}."),
    ):
        capsys.readouterr()
        assert main(["restore", str(source), "--data", str(tmp_path / "fresh")]) == 1
        assert capsys.readouterr() == ("", f"quipu: {message}\n")
        assert not (tmp_path / "fresh").exists()


def test_no_command_opens_a_backup_as_its_data(
    kernel: Kernel, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("add_memory", path="a", content="Tea.")
    copies, dated, fresh = tmp_path / "all", tmp_path / "dated", str(tmp_path / "fresh")
    for option, folder in (("--all", copies), ("--to", dated)):
        assert main(["backup", option, str(folder), "--data", str(kernel.config.data)]) == 0
    for copy in (copies, *dated.iterdir()):
        for words in (
            "add Coffee.",
            "recall tea",
            "list",
            "forget paths/a",
            "check --repair",
            "compact",
            "reindex",
            "undo 1",
            "key create --scope read",
            "expose --host a.example",
            "import rules .",
            "doctor",
            "serve",
            "stdio",
            f"restore {copy}",
            f"replica {fresh}",
        ):
            capsys.readouterr()
            assert main([*words.split(), "--data", str(copy)]) == 1
            assert capsys.readouterr() == (
                "",
                f"quipu: {copy} is a backup, and a command that opens it would change it. `quipu restore {copy} --data "
                "FOLDER` puts it into another folder, to look into it; without --data it becomes your data, and those "
                "before it are kept.\n",
            )
        assert main(["store", "copy", str(copy), fresh]) == 1
        assert not Path(fresh).exists()
    assert main(["restore", str(copies), "--data", fresh]) == 0
    capsys.readouterr()
    assert main(["recall", "tea", "--data", fresh]) == 0
    assert capsys.readouterr().out.startswith("paths/a ")


def test_a_data_directory_may_hold_the_manifest_of_another_program(
    kernel: Kernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (kernel.config.data / "manifest.json").write_text('{"name": "app", "format": 1}')
    assert main(["add", "Tea.", "--name", "a", "--data", str(kernel.config.data)]) == 0
    assert capsys.readouterr().out.startswith("added paths/a\n")


def test_a_backup_that_another_program_has_opened_says_how_its_database_is_restored(
    kernel: Kernel, call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("add_memory", path="a", content="Tea.")
    copy, fresh = tmp_path / "copy", str(tmp_path / "fresh")
    assert main(["backup", "--all", str(copy), "--data", str(kernel.config.data)]) == 0
    (copy / "quipu.db-wal").touch()
    capsys.readouterr()
    assert main(["restore", str(copy), "--data", fresh]) == 1
    command = f"quipu restore {copy / 'quipu.db'}"
    assert capsys.readouterr().err.endswith(f" Has a program opened it? `{command}` takes what is there now.\n")
    assert main([*command.split()[1:], "--data", fresh]) == 0


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

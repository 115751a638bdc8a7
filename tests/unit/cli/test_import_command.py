"""`quipu import`: in slices that another run goes on from, with counts and remarks, and nothing left of the copies."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from kernel.calls.dialect import Exchange
from kernel.cli import commands
from kernel.cli.main import parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines.foreign_file import open_external
from kernel.memories.import_records import Import, Imported, Source
from kernel.operations import portable_import
from kernel.search import index
from kernel.security import api_keys
from kernel.server import app
from kernel.server.upkeep import Upkeep
from kernel.store import history, long_work
from kernel.store.long_work import Steps
from tests.conftest import Call

SECRETS = {"BAD": "wrong", "GOOD": "right"}
Run = Callable[..., int]


def import_shelf(source: Source) -> Steps[Imported]:
    """Fails on the password `wrong` after the first memory."""
    with open_external(source.path, source.copies) as theirs:
        theirs.check({"memory": ("path", "content")})
        new = 0
        for row in theirs.rows("memory"):
            tx = yield
            added = tx.run("paths.memories.add", path=row["path"], content=row["content"], content_size=1, now=tx.now)
            if added:
                history.append(tx, "paths", row["path"], "added", after=row["content"])
                index.put(tx, "paths", row["path"], f"{row['path']}\n{row['content']}")
            new += added
            if source.password == "wrong":
                tx = yield
                raise Fault("invalid", "The password is wrong.")
        return Imported({"memories": new}, [f"password {source.password}"])


@pytest.fixture
def run(config: Config, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line with a dialect that imports shelves."""
    dialect = app.DIALECTS[0]._replace(exchange=Exchange((Import("shelf", "the files of a shelf", import_shelf),)))
    monkeypatch.setattr(app, "DIALECTS", (dialect, *app.DIALECTS[1:]))
    return lambda *line: commands.run(parser().parse_args(line), config._replace(environment=SECRETS))


@pytest.fixture
def shelf(tmp_path: Path) -> str:
    file = tmp_path / "theirs.db"
    db = apsw.Connection(str(file))
    db.execute("CREATE TABLE memory (path, content); INSERT INTO memory VALUES ('a', 'x'), ('b', 'y')")
    db.close()
    return str(file)


def rows(config: Config, query: str) -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(config.file))
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


PATHS = "SELECT path FROM paths_memory ORDER BY path"
AUDIT = "SELECT tool, outcome, touched FROM audit"


def test_an_import_into_a_tenant_that_no_key_opens_says_so(
    config: Config, run: Run, shelf: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = config._replace(environment=SECRETS, tenant="acne")
    words = parser().parse_args(["import", "shelf", shelf, "--password-env", "GOOD"])
    assert commands.run(words, other) == 0
    warning = "no key opens the tenant acne yet: `quipu key create --scope write --tenant acne` makes one\n"
    assert capsys.readouterr().err.endswith(warning)
    api_keys.create(config.data, api_keys.Key("", "write", "2026-01-01T00:00:00.000Z", tenant="acne"))
    assert commands.run(words, other) == 0
    assert warning not in capsys.readouterr().err


def test_an_import_without_a_memory_that_can_be_undone_says_so(
    config: Config, run: Run, shelf: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_file(source: Source) -> Steps[Imported]:
        tx = yield
        tx.run("paths.memories.add", path="a", content="x", content_size=1, now=tx.now)
        return Imported({"files": 1}, [])

    kind = Import("shelf", "the files of a shelf", take_file)
    monkeypatch.setattr(app, "DIALECTS", (app.DIALECTS[0]._replace(exchange=Exchange((kind,))), *app.DIALECTS[1:]))
    assert run("import", "shelf", shelf) == 0
    assert capsys.readouterr().out == "files: 1\nimported no memory; `quipu undo 1` takes it back\n"


def test_import_prints_counts_and_remarks(
    config: Config, run: Run, shelf: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("import", "shelf", shelf, "--password-env", "GOOD") == 0
    assert capsys.readouterr() == (
        "memories: 2\nimported 2 memories; `quipu undo 1` takes it back\n",
        "password right\n",
    )
    assert rows(config, PATHS) == [("a",), ("b",)]
    assert rows(config, AUDIT) == [("import shelf", "done", 2)]
    assert sorted(path.name for path in config.data.iterdir() if "import" in path.name) == []


def test_what_cannot_be_imported_is_refused_with_nothing_changed(config: Config, run: Run, shelf: str) -> None:
    with pytest.raises(Fault, match=r"^The variable NONE is unset or empty$"):
        run("import", "shelf", shelf, "--password-env", "NONE")
    with pytest.raises(Fault, match=r"^Cannot import attic; these can be imported:\n  jsonl "):
        run("import", "attic", shelf)
    assert rows(config, PATHS) == rows(config, AUDIT) == []


def test_a_fault_within_the_first_slice_changes_nothing(
    config: Config, run: Run, shelf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "SLICE_SECONDS", 600.0)
    with pytest.raises(Fault, match=r"^The password is wrong\.$"):
        run("import", "shelf", shelf, "--password-env", "BAD")
    assert rows(config, PATHS) == rows(config, AUDIT) == []


@pytest.mark.slow
def test_what_a_fault_leaves_can_be_undone_or_completed(
    config: Config, run: Run, shelf: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(long_work, "SLICE_SECONDS", -1.0)
    told = r"^The password is wrong\. What came before it is imported: another import goes on from there, and"
    for _ in range(2):
        with pytest.raises(Fault, match=told):
            run("import", "shelf", shelf, "--password-env", "BAD")
        assert rows(config, PATHS) == [("a",)]
        assert rows(config, AUDIT)[-1] == ("import shelf", "begun", 1)
        assert run("undo", str(len(rows(config, AUDIT)))) == 0
        assert rows(config, PATHS) == []
    with pytest.raises(Fault, match=told):
        run("import", "shelf", shelf, "--password-env", "BAD")
    assert run("import", "shelf", shelf, "--password-env", "GOOD") == 0
    assert rows(config, PATHS) == [("a",), ("b",)]
    assert run("check") == 0
    told = "an import of shelf before it was cut off: `quipu undo 5` takes back its 1 memory"
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "memories: 1",
        "imported 1 memory; `quipu undo 6` takes it back",
        told,
        "ok",
    ]
    assert run("import", "shelf", shelf, "--password-env", "GOOD", "--json") == 0
    assert json.loads(capsys.readouterr().out)["undo"] == [5]
    assert run("undo", "6", "5") == 0
    assert rows(config, PATHS) == []


@pytest.mark.slow
def test_check_and_the_start_of_a_server_name_an_import_that_was_cut_off(
    config: Config,
    run: Run,
    shelf: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(long_work, "SLICE_SECONDS", -1.0)
    for outcome in ("cut off", "done"):
        if outcome == "cut off":
            with pytest.raises(Fault, match=r"goes on from there"):
                run("import", "shelf", shelf, "--password-env", "BAD")
        else:
            assert run("import", "shelf", shelf, "--password-env", "GOOD") == 0
        capsys.readouterr()
        caplog.clear()
        line = "unfinished, call 1: `quipu import shelf` goes on when it is run again, or `quipu undo 1` takes it back"
        assert run("check") == 0
        assert capsys.readouterr().out == (f"imports: 1 {line}\nok\n" if outcome == "cut off" else "ok\n")
        kernel, stopping = app.open_kernel(config), threading.Event()
        stopping.set()
        Upkeep(kernel).run(stopping)
        kernel.store.close()
        warning = [("WARNING", f"an import is {line}")] if outcome == "cut off" else []
        assert [(record.levelname, record.getMessage()) for record in caplog.records] == warning


def test_what_a_killed_import_left_of_its_copies_goes_with_the_next_command(config: Config, run: Run) -> None:
    app.prepare_data(config, app.context_of(config))
    left = config.data / "import.0123abcd.quipu-unfinished"
    left.mkdir()
    (left / "core.db").write_text("decrypted")
    assert run("check") == 0
    assert not left.exists()


@pytest.mark.slow
def test_an_import_of_an_own_export_counts_memories_and_not_their_history(
    config: Config,
    run: Run,
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in range(4):
        call("add_memory", path=f"p/{number}", content=f"text {number}")
    call("replace_memory", path="p/0", content="another text")
    call("drop_memory", path="p/3")
    file = tmp_path / "all.jsonl"
    assert run("export", "jsonl", str(file)) == 0
    away = config._replace(data=tmp_path / "away", environment=SECRETS)
    words = parser().parse_args(["import", "jsonl", str(file)])

    monkeypatch.setattr(long_work, "SLICE_SECONDS", -1.0)
    monkeypatch.setattr(portable_import, "_BATCH_LINES", 1)
    with monkeypatch.context() as cut_off:
        cut_off.setattr(portable_import, "_add_event", interrupt)
        with pytest.raises(KeyboardInterrupt):
            commands.run(words, away)
    capsys.readouterr()
    assert commands.run(words, away) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "imported 3 memories; `quipu undo 3` takes it back",
        "an import of jsonl before it was cut off: `quipu undo 1` takes back its rows",
    ]


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_import_that_no_undo_takes_back_says_so(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "memories.json"
    file.write_text('[{"id": "m1", "memory": "Tea at five in the garden."}]')
    words = parser().parse_args(["import", "mem0", str(file)])
    for said in ("imported; `quipu undo` cannot take it back", "nothing new was imported"):
        assert commands.run(words, config._replace(undo_hours=0)) == 0
        assert said in capsys.readouterr().out

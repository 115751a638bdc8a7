"""Output and exit status of the commands."""

import argparse
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from kernel.cli import commands, doctor
from kernel.cli.commands import GROUPS
from kernel.cli.main import config_of, main, parser
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.engines.sqlite.connection import Connection
from kernel.security import api_keys
from kernel.server import app
from kernel.server.app import Kernel
from kernel.server.upkeep import Upkeep
from kernel.store import audit
from tests.conftest import Call

Run = Callable[..., tuple[int, str]]
_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d \S+"  # in the zone of the terminal


@pytest.fixture
def run(config: Config, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line with the settings of the test; its exit status and output."""

    def command(*arguments: str, **changes: object) -> tuple[int, str]:
        status = commands.run(parser().parse_args(arguments), config._replace(**changes))  # pyrefly: ignore[bad-argument-type]
        return status, capsys.readouterr().out

    return command


def damage(config: Config, statement: str) -> None:
    db = apsw.Connection(str(config.file))
    db.execute(statement)
    db.close()


@pytest.mark.usefixtures("kernel")
def test_check_of_an_empty_database_is_ok(run: Run) -> None:
    assert run("check") == (0, "ok\n")


@pytest.mark.parametrize(
    "command", [["check"], ["backup"], ["reindex"], ["compact"], ["audit"], ["undo", "1"], ["quarantine"]], ids=" ".join
)
@pytest.mark.parametrize("tenant", ["main", "typo"])
def test_a_place_without_a_database_is_refused_and_nothing_is_made_there(
    config: Config, run: Run, command: list[str], tenant: str
) -> None:
    wrong = config._replace(tenant=tenant)
    with pytest.raises(Fault, match=r"^There is no Quipu database in ") as refused:
        run(*command, tenant=tenant)
    assert (refused.value.code, config.data.exists(), wrong.home.exists()) == ("not_found", False, False)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            ["check", "--data", "{0}/file/below"],
            "There is no Quipu database in {0}/file/below: name its folder with --data.",
        ),
        (
            ["stdio", "--data", "{0}/file/below"],
            "Cannot use the data directory {0}/file/below: {0}/file is not a folder",
        ),
        (["backup", "{0}/file"], "{0}/file exists already, choose another name"),
        (["backup", "{0}/none/copy.db"], "Cannot write {0}/none/copy.db: No such file or directory"),
        (["import", "agent-memory", "{0}/none"], "Cannot read none: No such file or directory. ({0}/none)"),
        (
            ["check", "--model", "{0}/none"],
            "The model folder {0}/none lacks config.json: choose a model2vec folder, or none.",
        ),
    ],
    ids=lambda given: " ".join(given[:1]) if isinstance(given, list) else "",
)
def test_messages_name_the_whole_path(
    kernel: Kernel,
    tmp_path: Path,
    command: list[str],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("QUIPU_DATA", str(kernel.config.data))
    (tmp_path / "file").touch()
    assert main([word.format(tmp_path) for word in command]) == 1
    assert capsys.readouterr().err == f"quipu: {line.format(tmp_path)}\n"


@pytest.mark.slow
def test_check_reports_differences_and_repairs_them(kernel: Kernel, call: Call, run: Run) -> None:
    for path in ("a", "b"):
        call("add_memory", path=path, content="hello")
    damage(kernel.config, "DELETE FROM doc_vector")
    line = "documents: 2 without a vector of the configured model\n"
    assert run("check") == (1, f"{line}differences found\n")
    assert run("check", "--repair") == (0, f"{line}repaired\n")
    assert run("check") == (0, "ok\n")


@pytest.mark.slow
def test_check_takes_vectors_of_a_model_before_for_no_difference(kernel: Kernel, call: Call, run: Run) -> None:
    for path in ("a", "b", "c"):
        call("add_memory", path=path, content="hello")
    older = "UPDATE doc_vector SET model = (SELECT id FROM doc_model WHERE identity = 'older')"
    damage(kernel.config, f"INSERT INTO doc_model (identity, dimensions) VALUES ('older', 8); {older}")
    note = "not embedded with the configured model yet: a running server or `quipu reindex` does that\n"
    assert run("check") == (0, f"documents: 3 {note}ok\n")
    damage(kernel.config, "DELETE FROM doc_vector WHERE id = (SELECT min(id) FROM doc_vector)")
    line = "documents: 1 without a vector of the configured model\n"
    assert run("check") == (1, f"{line}documents: 2 {note}differences found\n")
    damage(kernel.config, "DELETE FROM doc_vector; DELETE FROM doc_model")  # as without a model before
    assert run("check") == (0, f"documents: 3 {note}ok\n")
    assert run("check", "--repair")[0] == 0
    assert run("check") == (0, "ok\n")


@pytest.mark.slow
def test_reindex_prints_the_number_of_vectors(kernel: Kernel, call: Call, run: Run) -> None:
    call("add_memory", path="a", content="hello")
    assert run("reindex") == (0, "1 vector rebuilt\n")


def precious(call: Call) -> None:
    """A memory that was dropped: call 2."""
    call("add_memory", path="precious", content="The precious fact.")
    call("drop_memory", path="precious")


def test_what_was_forgotten_can_be_undone_after_compact(kernel: Kernel, call: Call, run: Run) -> None:
    precious(call)
    kernel.store.close()

    assert run("compact")[0] == 0
    assert run("undo", "2")[0] == 0
    db = apsw.Connection(str(kernel.config.file))
    assert db.execute("SELECT content FROM paths_memory").fetchall() == [("The precious fact.",)]
    db.close()


@pytest.mark.slow
def test_what_was_forgotten_can_be_undone_after_compact_beside_a_server(kernel: Kernel, call: Call, run: Run) -> None:
    precious(call)

    for options in ([], ["--full"]):
        assert run("compact", *options)[0] == 0
    assert run("undo", "2")[0] == 0
    assert call("read_memory", path="precious").fault is None


@pytest.mark.slow
def test_an_import_can_be_undone_after_compact(kernel: Kernel, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "memory.jsonl"
    source.write_text(
        "".join(f'{{"type":"entity","name":"e{n}","entityType":"t","observations":["o"]}}\n' for n in range(300))
    )
    assert run("import", "server-memory", str(source))[0] == 0
    assert run("compact")[0] == 0
    number = max(entry.id for entry in kernel.store.read_sync(lambda tx: audit.read(tx, 9)) if entry.undoable)

    assert run("undo", str(number))[0] == 0
    assert kernel.store.read_sync(lambda tx: tx.one("kernel.consistency.count_docs", int)) == 0


@pytest.mark.slow
def test_an_import_ends_with_the_number_that_undoes_it(kernel: Kernel, run: Run, tmp_path: Path) -> None:
    source = tmp_path / "memory.jsonl"
    source.write_text('{"type":"entity","name":"Ada","entityType":"person","observations":["drinks tea"]}\n')
    last = run("import", "server-memory", str(source))[1].splitlines()[-1]
    assert last == "imported 1 memory; `quipu undo 1` takes it back"
    assert run("import", "server-memory", str(source))[1].splitlines()[-1] == "nothing new was imported"
    assert run("undo", "1")[0] == 0
    assert run("import", "server-memory", str(source))[1].splitlines()[-1].endswith("`quipu undo 3` takes it back")
    assert kernel.store.read_sync(lambda tx: tx.one("kernel.consistency.count_docs", int)) == 1


@pytest.mark.slow
def test_an_import_ends_with_what_it_added_updated_and_archived(kernel: Kernel, run: Run, tmp_path: Path) -> None:
    def last(**texts: str) -> str:
        rows = ", ".join(f'{{"id": "{number}", "memory": "{text}"}}' for number, text in texts.items())
        (tmp_path / "mem0.json").write_text(f"[{rows}]", encoding="utf-8")
        return run("import", "mem0", str(tmp_path / "mem0.json"))[1].splitlines()[-1].partition(";")[0]

    assert last(a="Tea.", b="Milk.", c="Rye.") == "imported 3 memories"
    assert last(c="Rye.") == "archived 2 memories"
    assert last(a="Tea.", c="Oats.", d="Nuts.") == "imported 1 memory, updated 2 memories"
    assert last(a="Tea.", c="Corn.", e="Figs.") == "imported 1 memory, updated 1 memory, archived 1 memory"


def test_undo_without_a_number_proposes_the_last_call(kernel: Kernel, call: Call, run: Run) -> None:
    with pytest.raises(Fault, match=r"^No recent call can be undone\.$"):
        run("undo")
    precious(call)
    with pytest.raises(Fault, match=r"^Which call\? `quipu undo 2` takes back the last: 2 .*drop_memory"):
        run("undo")
    assert kernel.store.read_sync(lambda tx: tx.one("kernel.consistency.count_docs", int)) == 0


def test_a_folder_that_does_not_say_what_it_is_gets_the_formats_with_their_texts(
    kernel: Kernel, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder" / "of pictures").mkdir(parents=True)
    with pytest.raises(Fault, match=r"folder does not say what it is(.|\n)*\n  claude-code +\S") as refused:
        run("import", str(tmp_path / "folder"))
    with pytest.raises(SystemExit):
        run("import", "--list")
    assert capsys.readouterr().out.split() == refused.value.message.partition("\n")[2].split()
    with pytest.raises(Fault, match=r"^Cannot import obsidan: did you mean obsidian\?$"):
        run("import", "obsidan", str(tmp_path / "folder"))
    assert kernel.store.read_sync(lambda tx: tx.one("kernel.consistency.count_docs", int)) == 0


@pytest.mark.slow
def test_undo_ends_only_where_it_is_asked_for(
    kernel: Kernel, call: Call, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    precious(call)

    with pytest.raises(Fault, match="--forget-undo needs --yes if there is no terminal"):
        run("compact", "--forget-undo")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _question: "n")
    with pytest.raises(Fault, match="Nothing was changed"):
        run("compact", "--forget-undo")
    assert "1 call can no longer be undone, the newest is 2, drop_memory" in capsys.readouterr().err
    monkeypatch.setattr("builtins.input", lambda _question: "y")
    assert '"undoable":0' in run("compact", "--forget-undo", "--json")[1]
    with pytest.raises(Fault, match="Call 2 cannot be undone"):
        run("undo", "2")


@pytest.mark.slow
def test_the_end_of_undo_needs_no_terminal_with_yes(kernel: Kernel, call: Call, run: Run) -> None:
    precious(call)
    assert '"undoable":1' in run("compact", "--json")[1]
    assert '"undoable":0' in run("compact", "--forget-undo", "--yes", "--json")[1]
    assert run("compact", "--forget-undo")[0] == 0  # nothing is lost, nothing is asked
    with pytest.raises(Fault, match="--yes goes with --forget-undo only"):
        run("compact", "--yes")


def test_backup_prints_its_path_and_defaults_to_the_data_directory(
    kernel: Kernel, call: Call, run: Run, tmp_path: Path
) -> None:
    call("add_memory", path="a", content="hello")
    assert run("backup", str(tmp_path / "copy.db")) == (0, f"{tmp_path / 'copy.db'}\n")
    status, printed = run("backup")
    assert status == 0
    named = Path(printed.strip())
    assert named.parent == kernel.config.data
    assert named.name.startswith("quipu-2")
    for file in (named, tmp_path / "copy.db"):
        db = apsw.Connection(str(file))
        assert db.execute("SELECT path FROM paths_memory").fetchall() == [("a",)]
        db.close()


def test_damaged_file_is_reported_in_one_line(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    app.open_kernel(config).store.close()
    content = bytearray(config.file.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    config.file.write_bytes(content)
    for command in ("check", "reindex"):
        assert main([command, "--data", str(config.data)]) == 1
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("quipu: ")


def test_locked_file_is_reported_as_busy(kernel: Kernel, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.engines.sqlite.connection.BUSY_MILLISECONDS", 10)
    other = apsw.Connection(str(kernel.config.file))
    other.set_busy_timeout(5000)  # the store may be at its first write
    other.execute("BEGIN IMMEDIATE")
    for command in ("check", "reindex"):
        with pytest.raises(Fault, match="The store is busy"):
            run(command)
    other.close()


def test_tools_are_listed_with_mode_and_description(run: Run) -> None:
    status, printed = run("tools")
    lines = printed.splitlines()
    assert status == 0
    assert len(lines) == sum(len(dialect.tools) for dialect in app.DIALECTS)
    assert lines[0].split()[:3] == ["paths", "write", "add_memory"]


def test_options_take_precedence_over_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QUIPU_DATA", "/from/environment")
    monkeypatch.setenv("PORT", "1234")

    def chosen(*arguments: str) -> Config:
        return config_of(parser().parse_args(arguments))

    assert (chosen("serve").data, chosen("serve").port) == (Path("/from/environment"), 1234)
    given = chosen("serve", "--data", str(tmp_path), "--host", "::1", "--port", "0", "--model", "none")
    assert (given.data, given.host, given.port, given.model) == (tmp_path, "::1", 0, None)


def test_fault_is_one_line_and_status_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "quipu.db").write_text(
        "not a database, whatever its name says, and long enough to be read as one\n" * 9
    )
    assert main(["check", "--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("quipu: The database is damaged: ")


def test_parser_has_the_documented_commands() -> None:
    actions = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    assert set(actions[0].choices) == {
        "serve",
        "store",
        "ui",
        "service",
        "expose",
        "stdio",
        "check",
        "backup",
        "restore",
        "reindex",
        "compact",
        "import",
        "audit",
        "undo",
        "quarantine",
        "tools",
        "key",
        "setup",
        "doctor",
        "health",
        "export",
        "completion",
        "replica",
        "tenant",
        *GROUPS["Memories"],
        "prime",
        "hook",
    }


def test_key_is_created_listed_without_secret_and_revoked(run: Run) -> None:
    assert run("key", "list") == (0, "")
    wanted = ("--scope", "write", "--tenant", "acme", "--dialect", "paths", "--dialect", "brain", "--name", "laptop")
    status, printed = run("key", "create", *wanted, "--expires", "90d")
    secret = printed.strip()
    id_ = api_keys.parse(secret)
    assert (status, bool(id_)) == (0, True)
    run("key", "create", "--scope", "read")
    listed = run("key", "list")[1]
    first, second = (re.sub(_TIME, "TIME", line) for line in listed.splitlines())
    assert first == f"{id_}  active    acme  write  brain,paths  created TIME  expires TIME  laptop"
    assert second[8:] == "  active    main  read  all dialects  created TIME  never expires"
    assert secret[15:] not in listed
    assert api_keys.digest(secret) not in listed
    status, printed = run("key", "revoke", id_)
    assert (status, re.sub(_TIME, "TIME", printed)) == (
        0,
        f"{id_}  revoked   acme  write  brain,paths  created TIME  revoked TIME  laptop\n",
    )
    assert run("key", "list")[1].startswith(f"{id_}  revoked ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tenant", "../elsewhere"), "A tenant has a name"),
        (("--dialect", "nope"), "There is no dialect nope"),
        (("--dialect", "common"), "common reads every dialect"),
        (("--expires", "2020-01-01"), "in the future"),
        (("--name", "two\nlines"), "printable characters"),
    ],
)
def test_invalid_key_options_are_refused(run: Run, options: tuple[str, ...], message: str) -> None:
    with pytest.raises(Fault, match=message):
        run("key", "create", "--scope", "read", *options)
    assert run("key", "list") == (0, "")


def test_check_and_backup_tell_damage_that_sqlite_sees(config: Config, kernel: Kernel, run: Run) -> None:
    at = start_of_table(kernel, "history")
    kernel.store.close()
    turn_bits(config.file, at)
    with pytest.raises(Fault, match=r"^The file is damaged: Tree \d+ page .* \(history\); put a backup in its place"):
        run("check", "--repair")
    with pytest.raises(Fault, match=r"^The database is damaged: .* Run `quipu check`; no copy was made\.$"):
        run("backup", str(config.data / "copy.db"))
    assert not (config.data / "copy.db").exists()
    assert doctor.damage_of(config.file, kernel.store.context)


@pytest.mark.parametrize("kind", ["jsonl", "okf", "markdown"])
def test_export_of_a_damaged_store_is_written_and_told(
    config: Config, kernel: Kernel, call: Call, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("save_memory", db="core", content="The lamp of the house", category="fact").fault is None
    damage(kernel.config, "UPDATE brain_memory SET content = 'The Ramp of the house'")
    status = commands.run(parser().parse_args(["export", kind, str(tmp_path / "out")]), config)
    assert (status, (tmp_path / "out").exists()) == (1, True)
    assert 'The Ramp of the house", the index has' in capsys.readouterr().err


def turn_bits(file: Path, at: int) -> None:
    """Turn the bits of the header of a page."""
    with file.open("r+b") as content:
        content.seek(at)
        content.write(b"\xff" * 8)


def start_of_table(kernel: Kernel, name: str) -> int:
    """The place of the first page of a table."""
    db = Connection(kernel.config.file, kernel.store.context, readonly=True)
    ((page,),) = db.values(f"SELECT rootpage FROM sqlite_schema WHERE name = '{name}'")
    size = int(str(db.pragma("page_size")))
    db.close()
    return (int(str(page)) - 1) * size


def test_a_file_that_was_not_closed_is_checked_after_the_start(
    config: Config, kernel: Kernel, call: Call, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert call("add_memory", path="p", content="The car is red.").fault is None
    killed = config._replace(data=shutil.copytree(config.data, tmp_path / "killed"), model=None)
    for damaged in (False, True):
        copy = killed._replace(data=shutil.copytree(killed.data, tmp_path / str(damaged)))
        running = app.open_kernel(copy)
        assert running.unclean
        if damaged:
            turn_bits(copy.file, start_of_table(running, "brain_memory"))
        stopping = threading.Event()
        stopping.set()
        with caplog.at_level("INFO"):
            Upkeep(running).run(stopping)
        assert ("it is damaged: Tree" in caplog.text) == damaged
        running.store.close()
        again = app.open_kernel(copy)
        again.store.close()
        assert not again.unclean
    kernel.store.close()

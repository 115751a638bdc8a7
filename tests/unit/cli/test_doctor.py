"""`quipu doctor` on a working installation and with each problem it detects."""

import io
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import apsw
import msgspec
import pytest

from handlers.console.guide import Finding
from kernel.cli import doctor, service
from kernel.cli.client_entries import LaunchCommand
from kernel.cli.clients import BY_NAME, config_file
from kernel.cli.main import main
from kernel.core.config import MODEL, VERSION, Config
from kernel.core.errors import Fault
from kernel.engines.migrations import APPLICATION_ID
from kernel.security import api_keys
from kernel.server.app import Kernel, open_kernel
from tests.conftest import Call
from tests.reliability.server_process import free_port, serving
from tests.support.cli_probe_listeners import answering
from tests.unit.sql.code import ROOT

Doctor = Callable[..., tuple[int, dict[str, str]]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def visit(config: Config, home: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Run the doctor; the exit status and the last line of each subject."""

    def run(**changes: object) -> tuple[int, dict[str, str]]:
        settled = config._replace(port=free_port(), environment={"HOME": str(home)})._replace(**changes)  # pyrefly: ignore[bad-argument-type]
        status = doctor.run(Namespace(json=False), settled, "linux")
        lines = capsys.readouterr().out.splitlines()
        return status, {line[7:].partition(":")[0]: line for line in lines}

    return run


def write(home: Path, client: str, content: str, mode: int = 0o600) -> Path:
    file = config_file(BY_NAME[client], {"HOME": str(home)}, "linux")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    file.chmod(mode)
    return file


def servers(entry: object) -> str:
    return json.dumps({"mcpServers": {"quipu": entry}})


def test_doctor_creates_nothing_before_the_first_start(visit: Doctor, config: Config) -> None:
    status, lines = visit()
    assert status == 0
    assert [line[:6].strip() for line in lines.values()] == ["ok", "ok", "ok", "ok", "ok", "hint", "ok", "hint"]
    assert lines["data directory"] == f"ok     data directory: {config.data} is created at the first start"
    assert lines["database"] == "ok     database: none yet; created at the first start"
    assert lines["model"] == f"ok     model: {MODEL.name}, 256 dimensions"
    assert lines["server"].endswith(
        f" --data {config.data}` starts it; clients that start their own server do not need it"
    )
    assert lines["clients"].endswith("no supported client is configured for Quipu; `quipu setup --client NAME`")
    assert not config.data.exists()


@pytest.mark.slow
def test_running_server_with_a_configured_client_is_ok(visit: Doctor, tmp_path: Path, home: Path) -> None:
    with serving(tmp_path / "served") as server:
        server.data.chmod(0o700)
        write(home, "cursor", servers({"url": f"http://localhost:{server.port}/mcp/brain"}))
        status, lines = visit(data=server.data, port=server.port)
    assert status == 0
    assert {line[:6].strip() for line in lines.values()} == {"ok"}
    assert lines["server"] == f"ok     server: Quipu {VERSION} listens on 127.0.0.1:{server.port}"
    assert lines["Cursor"] == f"ok     Cursor: points to http://localhost:{server.port}/mcp/brain"


def test_doctor_command_prints_results_and_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").write_text("no folder")
    assert main(["doctor", "--data", str(tmp_path / "data"), "--port", str(free_port()), "--model", "none"]) == 1
    printed = capsys.readouterr().out
    assert f"wrong  data directory: {tmp_path / 'data'} cannot be written to: Not a directory; " in printed
    assert "hint   model: none is configured: search uses full text alone" in printed


def test_data_directory_on_a_network_file_system_is_wrong(
    visit: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = doctor.kind_of(tmp_path)
    if not here:
        pytest.skip("this system does not expose file system types")
    monkeypatch.setattr(doctor, "NETWORK", frozenset({here}))
    status, lines = visit()
    assert status == 1
    assert lines["data directory"].startswith(
        f"wrong  data directory: it is on {here}, where SQLite's write-ahead log can lose"
    )


@pytest.mark.parametrize("name", ["OneDrive - Acme", "Dropbox", "Mobile Documents"])
def test_data_directory_that_a_program_copies_elsewhere_is_a_hint(visit: Doctor, tmp_path: Path, name: str) -> None:
    status, lines = visit(data=tmp_path / name / "quipu")
    assert status == 0
    assert lines["data directory"].startswith(f"hint   data directory: {name} is synchronized: ")


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("name", ["quipu.db", "quipu.db-wal", "keys.json", ""])
def test_files_accessible_to_other_users_are_a_hint(visit: Doctor, kernel: Kernel, name: str) -> None:
    path = kernel.config.data / name
    if name == "keys.json":
        path.write_text("[]")
    elif name:
        path.touch()
    path.chmod(0o755)
    status, lines = visit()
    assert (status, lines["data directory"]) == (
        0,
        f"hint   data directory: other users can access {path}; chmod -R go= {kernel.config.data}",
    )


def damaged(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    file.write_bytes(content)


def foreign(file: Path) -> None:
    file.unlink()
    with apsw.Connection(str(file)) as db:
        db.execute("CREATE TABLE theirs (a)")
    db.close()


def newer(file: Path) -> None:
    with apsw.Connection(str(file)) as db:
        db.pragma("user_version", 9999)
    db.close()


def changed(file: Path) -> None:
    with apsw.Connection(str(file)) as db:
        db.execute("UPDATE migration SET sha256 = 'x' WHERE name = '0001_kernel'")
    db.close()


def no_database(file: Path) -> None:
    file.write_text("not a database, whatever its name says, and long enough to be read as one\n" * 9)


@pytest.mark.parametrize(
    ("harm", "detail"),
    [
        (damaged, "The file is damaged: "),
        (foreign, "This file is not a Quipu database;"),
        (newer, "The database has schema 9999, newer than this program's "),
        (changed, "Migration 0001_kernel of this database is not the one this program knows: "),
        (no_database, "The file is damaged: file is not a database"),
    ],
)
def test_unusable_database_is_wrong_and_unchanged(
    visit: Doctor, kernel: Kernel, harm: Callable[[Path], None], detail: str
) -> None:
    file = kernel.config.file
    kernel.store.close()
    harm(file)
    before = file.read_bytes()
    status, lines = visit()
    assert status == 1
    assert lines["database"].startswith(f"wrong  database: {detail}")
    assert ("; install that newer Quipu; " in lines["database"]) == (harm is newer)
    assert lines["database"].endswith(
        f"; `quipu restore BACKUP --data {kernel.config.data}` puts a backup in place, or choose another data directory"
    )
    assert file.read_bytes() == before


def without_its_file(file: Path) -> None:
    file.unlink()


def in_place_of_another(file: Path) -> None:
    db = apsw.Connection(str(file.with_name("other.db")))
    db.pragma("application_id", APPLICATION_ID)
    db.close()
    file.with_name("other.db").replace(file)


@pytest.mark.parametrize(
    ("harm", "detail"),
    [
        (without_its_file, "quipu.db is missing and its log is not. Restore a backup with `quipu restore FILE`, or "),
        (in_place_of_another, "quipu.db-wal does not belong to quipu.db, which was put in its place. Restore a backup"),
    ],
)
def test_log_beside_no_or_another_database_is_wrong_as_at_a_start(
    visit: Doctor, kernel: Kernel, call: Call, harm: Callable[[Path], None], detail: str, tmp_path: Path
) -> None:
    call("add_memory", path="a", content="b")
    killed = shutil.copytree(kernel.config.data, tmp_path / "killed")
    harm(killed / "quipu.db")
    before = {path: path.read_bytes() for path in killed.iterdir()}
    status, lines = visit(data=killed)
    assert (status, lines["database"].startswith(f"wrong  database: {detail}")) == (1, True)
    with pytest.raises(Fault) as refused:
        open_kernel(kernel.config._replace(data=killed))
    assert lines["database"] == f"wrong  database: {refused.value.message}"
    assert {path: path.read_bytes() for path in killed.iterdir()} == before


def test_interrupted_restore_is_a_hint(visit: Doctor, kernel: Kernel) -> None:
    kernel.store.close()
    (kernel.config.data / "restore.json").write_text("[]")
    assert visit()[1]["database"] == "hint   database: a restore was interrupted; the next start finishes it"


def test_database_of_an_older_release_is_ok(visit: Doctor, kernel: Kernel) -> None:
    kernel.store.close()
    with apsw.Connection(str(kernel.config.file)) as db:
        db.pragma("user_version", 1)
        db.execute("DELETE FROM migration WHERE name <> '0001_kernel'")
    db.close()
    assert visit()[1]["database"].startswith("ok     database: ")


def test_documents_without_a_vector_are_a_hint(visit: Doctor, kernel: Kernel, call: Call) -> None:
    call("add_memory", path="a", content="hello")
    with apsw.Connection(str(kernel.config.file)) as db:
        db.execute("DELETE FROM doc_vector")
    db.close()
    status, lines = visit()
    assert status == 0
    assert lines["database"] == (
        "hint   database: 1 document has no vector of this model yet; only full-text search finds them; "
        f"a running server or `quipu reindex --data {kernel.config.data}` embeds them"
    )
    assert visit(model=None)[1]["database"].endswith("MiB, SQLite's integrity check passed")


@pytest.mark.slow
def test_unreadable_model_is_wrong(visit: Doctor, kernel: Kernel, tmp_path: Path) -> None:
    assert kernel.config.file.exists()
    copy = shutil.copytree(MODEL, tmp_path / "model")
    assert visit(model=copy)[0] == 0
    (copy / "model.safetensors").write_bytes(b"\0" * 100)
    status, lines = visit(model=copy)
    assert status == 1
    assert lines["model"].startswith(f"wrong  model: {copy} cannot be used: ")
    assert lines["model"].endswith("; correct QUIPU_MODEL or --model")
    (copy / "tokenizer.json").unlink()
    assert visit(model=copy)[1]["model"].startswith("wrong")
    assert visit(model=tmp_path / "nowhere")[1]["database"].startswith("ok")


def test_invalid_setting_is_wrong(visit: Doctor, home: Path) -> None:
    status, lines = visit(environment={"HOME": str(home), "CODE_MEMORY_TOP_K": "many"})
    assert (status, lines["settings"].partition(";")[0]) == (
        1,
        "wrong  settings: CODE_MEMORY_TOP_K is a whole number from 1 to 1000",
    )
    line = visit(dialects=("paths", "path"))[1]["settings"]
    assert line.startswith("wrong  settings: There is no dialect path: choose from paths, scopes, ")


@pytest.mark.parametrize(
    ("free", "grade", "detail"),
    [
        (10 << 20, "wrong", "10 MiB free; free some space: below 64 MiB writes begin to fail"),
        (100 << 20, "hint", "100 MiB free, too little for a copy of the database; free some space for backups"),
        (5000 << 20, "ok", "5,000 MiB free"),
    ],
)
def test_low_disk_space_is_graded(
    visit: Doctor, config: Config, monkeypatch: pytest.MonkeyPatch, free: int, grade: str, detail: str
) -> None:
    config.data.mkdir(mode=0o700)
    with config.file.open("wb") as file:
        file.truncate(60 << 20)
    monkeypatch.setattr("kernel.cli.doctor.shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    status, lines = visit()
    assert lines["disk"] == f"{grade:5}  disk: {detail}"
    assert status == 1  # a file of zeros is not a database


@pytest.mark.parametrize(
    ("pip", "installer"),
    [(object(), f"{sys.executable} -m pip install"), (None, f"uv pip install --python {sys.executable}")],
    ids=["pip", "uv"],
)
def test_sqlite_with_the_checkpoint_bug_is_wrong_and_no_database_is(
    visit: Doctor, kernel: Kernel, monkeypatch: pytest.MonkeyPatch, pip: object, installer: str
) -> None:
    assert kernel.config.file.is_file()
    monkeypatch.setattr("kernel.cli.doctor.sqlite_version", lambda: 3051002)
    monkeypatch.setattr("kernel.cli.doctor.find_spec", lambda _: pip)
    status, lines = visit()
    assert (status, lines["engine"]) == (
        1,
        "wrong  engine: SQLite 3.51.2 can lose pages while checkpointing; "
        f"`{installer} 'apsw>=3.54.1'` installs a newer one",
    )
    assert "database" not in lines


@pytest.mark.slow
def test_apsw_of_an_old_sqlite_does_not_keep_the_doctor_from_its_check() -> None:
    """Its `config` takes two arguments, and the remedy is printed by the doctor."""
    script = (
        "import apsw\n"
        "def config(option, value): pass\n"
        "apsw.config, apsw.SQLITE_VERSION_NUMBER = config, 3051002\n"
        "from kernel.cli import doctor\n"
        "print(next(doctor.sqlite(None)).detail)"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    assert ran.stdout == "SQLite 3.51.2 can lose pages while checkpointing\n"


def test_another_program_on_the_port_is_named(visit: Doctor) -> None:
    with answering(404) as port:
        status, lines = visit(port=port)
    assert status == 1
    assert f"(process {os.getpid()}) listens on 127.0.0.1:{port} and is not Quipu; stop it, or give" in lines["server"]


def test_unresponsive_listener_is_not_quipu(visit: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.cli.probe._TIMEOUT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        status, lines = visit(port=silent.getsockname()[1])
    assert status == 1
    assert "and is not Quipu" in lines["server"]


def test_other_version_is_a_hint_and_required_key_is_ok(visit: Doctor, config: Config, home: Path) -> None:
    other = msgspec.json.encode({"result": {"serverInfo": {"name": "quipu", "version": "0.0.9"}}})
    with answering(200, other) as port:
        status, lines = visit(port=port)
        state = f"hint   server: Quipu 0.0.9 listens on 127.0.0.1:{port}, this is {VERSION}; "
        words = f"--port {port} --data {config.data}"
        assert (status, lines["server"]) == (
            0,
            f"{state}stop {doctor.probe.listening_process(port)}; `quipu serve {words}` then starts this version",
        )
        unit = service.define(config._replace(environment={"HOME": str(home)}), LaunchCommand(("q",), {}), sys.platform)
        unit.file.parent.mkdir(parents=True)
        unit.file.touch()
        assert visit(port=port)[1]["server"] == (
            f"{state}`quipu service remove`, then `quipu service install {words}` starts this version"
        )
    with answering(401) as port:
        assert (
            visit(port=port)[1]["server"] == f"ok     server: a server that requires a key listens on 127.0.0.1:{port}"
        )


def test_lost_key_file_of_a_store_that_had_keys_is_wrong(visit: Doctor, config: Config) -> None:
    api_keys.create(config.data, api_keys.Key("", "write", NOW))
    open_kernel(config).store.close()
    (config.data / api_keys.FILE).unlink()
    status, lines = visit()
    assert status == 1
    assert lines["keys"].startswith(
        "wrong  keys: keys.json is lost: no request is accepted; restore it from a backup; "
    )
    api_keys.clear(config.data)
    assert visit()[1]["keys"] == "ok     keys: none created: this machine needs none"


NOW = "2026-01-02T00:00:00.000Z"


@pytest.mark.parametrize(
    ("key", "changes", "line"),
    [
        ("", {}, "ok     keys: none created: this machine needs none"),
        ("active", {}, "ok     keys: 1 created"),
        ("active", {"host": "0.0.0.0"}, "ok     keys: 1 created"),
        (
            "revoked",
            {},
            "wrong  keys: all are expired or revoked: no request is accepted; `quipu key create --scope admin ",
        ),
        (
            "",
            {"host": "0.0.0.0"},
            "wrong  keys: a server on 0.0.0.0 needs keys to start; `quipu key create --scope admin ",
        ),
        (
            "",
            {"host": "0.0.0.0", "open": True},
            "hint   keys: anyone who can reach 0.0.0.0 can read and write; unset QUIPU_OPEN",
        ),
        ("unreadable", {}, "wrong  keys: keys.json cannot be read, so no caller can be authenticated; "),
    ],
)
def test_key_configuration_is_graded(
    visit: Doctor, config: Config, key: str, changes: dict[str, Any], line: str
) -> None:
    if key in ("active", "revoked"):
        made, _ = api_keys.create(config.data, api_keys.Key("", "read", NOW))
        if key == "revoked":
            api_keys.revoke(config.data, made.id, NOW)
    elif key:
        config.data.mkdir(mode=0o700)
        (config.data / "keys.json").write_text("{")
    assert visit(**changes)[1]["keys"].startswith(line)


def test_client_without_a_valid_key_is_wrong(visit: Doctor, config: Config, home: Path) -> None:
    key, secret = api_keys.create(config.data, api_keys.Key("", "read", NOW))

    def line(bearer: str) -> str:
        headers = {"headers": {"Authorization": f"Bearer {bearer}"}} if bearer else {}
        write(home, "cursor", servers({"url": "http://127.0.0.1:7000/mcp", **headers}))
        return visit(port=7000)[1]["Cursor"]

    ended = "wrong  Cursor: its key is expired, revoked or unknown; create one with `quipu key create --scope write "
    assert line(secret) == "ok     Cursor: points to http://127.0.0.1:7000/mcp"
    assert line("").startswith("wrong  Cursor: its entry has no key, but the server requires one; create one with")
    assert line(secret[:-1] + "!").startswith(ended)
    api_keys.revoke(config.data, key.id, NOW)
    assert line(secret).startswith(ended)


def test_client_at_the_public_address_of_the_server_is_right(visit: Doctor, config: Config, home: Path) -> None:
    key, secret = api_keys.create(config.data, api_keys.Key("", "read", NOW))
    url = "https://memory.example/mcp/paths,common"

    def line(entry: object) -> str:
        write(home, "cursor", servers(entry))
        return visit(port=7000, public="https://memory.example")[1]["Cursor"]

    with_key = {"url": url, "headers": {"Authorization": f"Bearer {secret}"}}
    assert line({"url": url}) == f"ok     Cursor: points to {url}, where it logs in"
    assert line(with_key) == f"ok     Cursor: points to {url}"
    assert line({"url": "https://memory.example:8000/mcp"}).startswith("hint   Cursor: points to https://memory.ex")
    api_keys.revoke(config.data, key.id, NOW)
    assert line(with_key).startswith("wrong  Cursor: its key is expired, revoked or unknown; create one with ")


def test_databases_of_all_tenants_are_checked(visit: Doctor, kernel: Kernel) -> None:
    other = kernel.config._replace(tenant="acme")
    other.home.mkdir(parents=True)
    no_database(other.file)
    status, lines = visit()
    assert status == 1
    assert lines["database"].startswith("ok")
    assert lines["database of acme"].startswith("wrong  database of acme: The file is damaged: file is not a database")
    assert "database" not in visit(tenant="acme")[1]


@pytest.mark.parametrize(
    ("entry", "mode", "grade", "detail"),
    [
        ({"url": "http://127.0.0.1:1/mcp"}, 0o600, "hint", "points to http://127.0.0.1:1/mcp, not to port 7000"),
        ({"url": "https://h.example:7000/mcp"}, 0o600, "hint", "points to https://h.example:7000/mcp, not to port"),
        ({"url": "http://[::1"}, 0o600, "hint", "points to http://[::1, not to port"),
        ({"url": "http://[::1]:7000/mcp"}, 0o644, "ok", "points to http://[::1]:7000/mcp"),
        (
            {"url": "http://127.0.0.1:7000/mcp", "headers": {"Authorization": "Bearer k"}},
            0o644,
            "hint",
            "other users can read the key in ",
        ),
        (
            {"command": "/nowhere/quipu", "args": ["stdio"]},
            0o600,
            "wrong",
            "{file} starts /nowhere/quipu, which is not installed",
        ),
        ({"command": "sh", "args": ["stdio", "--data", "/a"]}, 0o600, "hint", "its data directory is /a, not "),
        ({"command": "sh", "args": ["stdio"]}, 0o600, "ok", "starts sh stdio"),
    ],
)
def test_client_entry_is_graded(visit: Doctor, home: Path, entry: object, mode: int, grade: str, detail: str) -> None:
    file = write(home, "cursor", servers(entry), mode)
    write(home, "zed", "{}")
    status, lines = visit(port=7000)
    assert lines["Cursor"].startswith(f"{grade:5}  Cursor: {detail.replace('{file}', str(file))}")
    assert ("clients" in lines, "Zed" in lines) == (False, False)
    assert status == (1 if grade == "wrong" or lines["server"].startswith("wrong") else 0)


def test_unparsable_client_file_is_a_hint(visit: Doctor, home: Path) -> None:
    file = write(home, "codex", "a = ")
    status, lines = visit()
    assert status == 0
    assert lines["Codex"].startswith(f"hint   Codex: {file} cannot be read: invalid TOML: ")


def test_share_of_windows_is_a_network_file_system() -> None:
    share: Any = PureWindowsPath(r"\\server\share\memories")
    assert doctor.kind_of(share) in doctor.NETWORK


def without_vectors(config: Config, _home: Path) -> dict[str, Any]:
    with apsw.Connection(str(config.file)) as db:
        db.execute("DELETE FROM doc_vector")
    db.close()
    return {}


def damaged_full_text(config: Config, _home: Path) -> dict[str, Any]:
    with apsw.Connection(str(config.file)) as db:
        db.execute("UPDATE doc_fts_data SET block = zeroblob(30) WHERE id > 10")
    db.close()
    return {}


def unreadable_keys(config: Config, _home: Path) -> dict[str, Any]:
    (config.data / api_keys.FILE).write_text("{")
    (config.data / api_keys.FILE).chmod(0o600)
    return {}


def lost_keys(config: Config, _home: Path) -> dict[str, Any]:
    api_keys.create(config.data, api_keys.Key("", "write", NOW))
    open_kernel(config).store.close()
    (config.data / api_keys.FILE).unlink()
    return {}


def revoked_keys(config: Config, _home: Path) -> dict[str, Any]:
    key, _ = api_keys.create(config.data, api_keys.Key("", "write", NOW))
    api_keys.revoke(config.data, key.id, NOW)
    return {}


def no_key_for_others(_config: Config, _home: Path) -> dict[str, Any]:
    return {"host": "0.0.0.0"}


def no_backup(config: Config, _home: Path) -> dict[str, Any]:
    return {"backup_to": config.data.parent / "all of it"}


def client_of_another_port(_config: Config, home: Path) -> dict[str, Any]:
    write(home, "codex", 'mcp_servers.quipu.url = "http://127.0.0.1:7847/mcp/paths,common"')
    return {}


def client_of_another_folder(_config: Config, home: Path) -> dict[str, Any]:
    write(home, "claude-desktop", servers({"command": "sh", "args": ["stdio", "--data", "/a"]}))
    return {}


def client_of_a_lost_program(_config: Config, home: Path) -> dict[str, Any]:
    write(home, "cursor", servers({"command": "/nowhere/quipu", "args": ["stdio"]}))
    return {}


def client_without_a_key(config: Config, home: Path) -> dict[str, Any]:
    api_keys.create(config.data, api_keys.Key("", "admin", NOW))
    write(home, "cursor", servers({"url": "http://127.0.0.1:7000/mcp/brain"}))
    return {"port": 7000}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subject", "harm"),
    [
        ("database", without_vectors),
        ("database", damaged_full_text),
        ("keys", unreadable_keys),
        ("keys", lost_keys),
        ("keys", revoked_keys),
        ("keys", no_key_for_others),
        ("backups", no_backup),
        ("Codex", client_of_another_port),
        ("Claude Desktop", client_of_another_folder),
        ("Cursor", client_of_a_lost_program),
        ("Cursor", client_without_a_key),
    ],
)
def test_remedy_followed_word_by_word_makes_it_ok(
    visit: Doctor,
    kernel: Kernel,
    call: Call,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    subject: str,
    harm: Callable[[Config, Path], dict[str, Any]],
) -> None:
    """In a terminal that knows neither the folder nor the port: the first command, or both if one feeds the other."""
    for name in ("QUIPU_DATA", "PORT", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    call("add_memory", path="a", content="hello")
    kernel.store.close()
    changes = {"port": 7001, **harm(kernel.config, home)}
    line = visit(**changes)[1][subject]
    assert not line.startswith("ok")
    commands = re.findall(r"`quipu ([^`]+)`", line)
    for command in commands if "--key -`" in line else commands[:1]:
        monkeypatch.setattr("sys.stdin", io.StringIO(capsys.readouterr().out))
        assert main(shlex.split(command)) == 0
    capsys.readouterr()
    assert visit(**changes)[1][subject].startswith("ok")


NOBODY = 65534


def owner_only(file: Path) -> None:
    file.chmod(0o400)


def given_away(file: Path) -> None:
    os.chown(file, NOBODY, NOBODY)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "harm", "subjects", "reason", "remedy"),
    [
        ("quipu.db", owner_only, {"database"}, "its mode is 0400", "`chmod u+rw {path}`"),
        ("quipu.db", given_away, {"database"}, "it belongs to ", ", or `sudo chown -R "),
        ("keys.json", given_away, {"keys"}, "it belongs to ", ", or `sudo chown -R "),
        ("", given_away, {"data directory", "database", "keys"}, "it belongs to ", ", or `sudo chown -R "),
    ],
)
def test_file_that_this_user_may_not_use_is_wrong_with_its_owner_and_mode(
    kernel: Kernel,
    config: Config,
    home: Path,
    name: str,
    harm: Callable[[Path], None],
    subjects: set[str],
    reason: str,
    remedy: str,
) -> None:
    """A root without its power over files, so that the tests need no second user who can read the program."""
    if sys.platform == "win32" or os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can give a file away, and setpriv take from root what it may do with any file")
    api_keys.create(config.data, api_keys.Key("", "write", NOW))
    kernel.store.close()
    path = config.data / name
    harm(path)

    def run(*words: str) -> tuple[int, list[str], str]:
        powerless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", sys.executable, "-m", "kernel")
        options = ("--data", str(config.data), "--port", str(free_port()), "--model", "none")
        environment = {**os.environ, "HOME": str(home)}
        done = subprocess.run(
            [*powerless, *words, *options], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout.splitlines(), done.stderr

    status, lines, errors = run("doctor")
    wrong = {line[7:].partition(":")[0]: line for line in lines if line.startswith("wrong")}
    assert (status, errors, wrong.keys()) == (1, "", subjects)
    for line in wrong.values():
        assert str(path) in line
        assert reason in line
        assert remedy.format(path=path) in line
        assert "restore" not in line
    assert any("clients: " in line for line in lines)
    if name == "quipu.db":
        status, _, errors = run("serve")
        assert status == 1
        assert f"quipu: Cannot write to storage: {path} cannot be used: {reason}" in errors


@pytest.mark.slow
def test_file_system_that_is_mounted_read_only_is_wrong(kernel: Kernel, visit: Doctor, config: Config) -> None:
    kernel.store.close()
    mount = shutil.which("mount") or ""
    if sys.platform != "linux" or os.geteuid() != 0 or not mount:
        pytest.skip("only root can mount a folder")
    if subprocess.run([mount, "--bind", config.data, config.data], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        subprocess.run([mount, "-o", "remount,ro,bind", config.data], check=True)
        status, lines = visit()
    finally:
        subprocess.run(["umount", config.data], check=True)
    assert status == 1
    for subject in ("data directory", "database"):
        assert "its file system is mounted read-only; mount it for writing, or choose another" in lines[subject]


def test_check_that_the_system_stops_is_wrong_and_the_next_is_made(config: Config) -> None:
    def stopped(_config: Config) -> Iterator[Finding]:
        yield from ()
        raise OSError(5, "Input/output error", "/a")

    def sound(_config: Config) -> Iterator[Finding]:
        yield Finding("ok", "sound", "", "")

    assert [*doctor.findings(config, [stopped, sound])] == [
        Finding("wrong", "stopped", "Input/output error: /a", ""),
        Finding("ok", "sound", "", ""),
    ]


@pytest.mark.parametrize("name", ["keys", "data directory"])
def test_file_in_the_place_of_the_data_directory_is_no_loss_of_keys(visit: Doctor, config: Config, name: str) -> None:
    config.data.write_text("no folder")
    assert visit()[1][name].endswith("; choose another with --data or QUIPU_DATA")

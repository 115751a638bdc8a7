"""What the doctor says of a sound server, and of each thing that may be wrong."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import msgspec
import pytest

from kernel.app import Kernel
from kernel.cli import doctor
from kernel.cli.clients import BY_NAME, file_of
from kernel.cli.main import main
from kernel.config import MODEL, VERSION, Config
from kernel.security import api_keys
from tests.conftest import Call
from tests.reliability.server_process import free_port, serving
from tests.unit.cli.test_probe_listeners import answering

Doctor = Callable[..., tuple[int, dict[str, str]]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def visit(config: Config, home: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """The status, and what was said last of each thing, with its grade."""

    def look(**changes: object) -> tuple[int, dict[str, str]]:
        settled = config._replace(port=free_port(), environment={"HOME": str(home)})._replace(**changes)
        status = doctor.run(settled, "linux")
        lines = capsys.readouterr().out.splitlines()
        return status, {line[7:].partition(":")[0]: line for line in lines}

    return look


def write(home: Path, client: str, content: str, mode: int = 0o600) -> Path:
    file = file_of(BY_NAME[client], {"HOME": str(home)}, "linux")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    file.chmod(mode)
    return file


def servers(entry: object) -> str:
    return json.dumps({"mcpServers": {"quipu": entry}})


def test_before_the_first_start_there_are_hints_and_nothing_is_made(visit: Doctor, config: Config) -> None:
    status, told = visit()
    assert status == 0
    assert [line[:6].strip() for line in told.values()] == ["ok", "ok", "ok", "ok", "ok", "hint", "ok", "hint"]
    assert told["data directory"] == f"ok     data directory: {config.data} will be made at the first start"
    assert told["database"] == "ok     database: none yet; it is made at the first start"
    assert told["model"] == f"ok     model: {MODEL.name}, 256 dimensions"
    assert told["server"].endswith("; `quipu serve` starts one; clients that start their own need none")
    assert told["clients"].endswith("none that is known points to Quipu; `quipu setup --client NAME`")
    assert not config.data.exists()


def test_of_a_server_that_runs_and_a_client_that_points_to_it_all_is_well(
    visit: Doctor, tmp_path: Path, home: Path
) -> None:
    with serving(tmp_path / "served") as server:
        server.data.chmod(0o700)
        write(home, "cursor", servers({"url": f"http://localhost:{server.port}/mcp/brain"}))
        status, told = visit(data=server.data, port=server.port)
    assert status == 0
    assert {line[:6].strip() for line in told.values()} == {"ok"}
    assert told["server"] == f"ok     server: Quipu {VERSION} listens on 127.0.0.1:{server.port}"
    assert told["Cursor"] == f"ok     Cursor: points to http://localhost:{server.port}/mcp/brain"


def test_the_command_line_reaches_the_doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").write_text("no folder")
    assert main(["doctor", "--data", str(tmp_path / "data"), "--port", str(free_port()), "--model", "none"]) == 1
    printed = capsys.readouterr().out
    assert f"wrong  data directory: {tmp_path / 'data'} cannot be written to: Not a directory; " in printed
    assert "hint   model: none is configured: search goes by words alone" in printed


def test_a_data_directory_on_a_disk_of_another_machine_is_wrong(
    visit: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = doctor._file_system(tmp_path)  # pyright: ignore[reportPrivateUsage]
    if not here:
        pytest.skip("this system does not say what its disks are")
    monkeypatch.setattr(doctor, "_SHARED", frozenset({here}))
    status, told = visit()
    assert status == 1
    assert told["data directory"].startswith(f"wrong  data directory: it lies on {here}, where SQLite's log can lose")


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("name", ["quipu.db", "quipu.db-wal", "keys.json", ""])
def test_what_others_may_read_is_a_hint(visit: Doctor, kernel: Kernel, name: str) -> None:
    path = kernel.config.data / name
    if name == "keys.json":
        path.write_text("[]")
    elif name:
        path.touch()
    path.chmod(0o755)
    status, told = visit()
    assert (status, told["data directory"]) == (
        0,
        f"hint   data directory: others may look into {path}; chmod -R go= {kernel.config.data}",
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
    ("harm", "told"),
    [
        (damaged, "The file is damaged: "),
        (foreign, "This file is not a Quipu database."),
        (newer, "The database has schema 9999, newer than this program's "),
        (changed, "Migration 0001_kernel of this database is not the one this program knows."),
        (no_database, "The file is damaged: file is not a database"),
    ],
)
def test_a_file_that_cannot_be_used_is_wrong_and_stays_as_it_is(
    visit: Doctor, kernel: Kernel, harm: Callable[[Path], None], told: str
) -> None:
    file = kernel.config.file
    kernel.store.close()
    harm(file)
    before = file.read_bytes()
    status, said = visit()
    assert status == 1
    assert said["database"].startswith(f"wrong  database: {told}")
    assert said["database"].endswith("; put a backup in its place, or choose another data directory")
    assert file.read_bytes() == before


def test_a_file_of_an_older_release_is_sound(visit: Doctor, kernel: Kernel) -> None:
    kernel.store.close()
    with apsw.Connection(str(kernel.config.file)) as db:
        db.pragma("user_version", 1)
    db.close()
    assert visit()[1]["database"].startswith("ok     database: ")


def test_documents_without_a_vector_are_a_hint(visit: Doctor, kernel: Kernel, call: Call) -> None:
    call("add_memory", path="a", content="hello")
    with apsw.Connection(str(kernel.config.file)) as db:
        db.execute("DELETE FROM doc_vector")
    db.close()
    status, told = visit()
    assert status == 0
    assert told["database"] == (
        "hint   database: 1 documents have no vector of this model yet, and are found by words alone; "
        "a running server makes them, and so does `quipu reindex`"
    )
    assert visit(model=None)[1]["database"].endswith("MiB, sound")


def test_a_model_that_cannot_be_read_is_wrong(visit: Doctor, kernel: Kernel, tmp_path: Path) -> None:
    assert kernel.config.file.exists()
    copy = shutil.copytree(MODEL, tmp_path / "model")
    assert visit(model=copy)[0] == 0
    (copy / "model.safetensors").write_bytes(b"\0" * 100)
    status, told = visit(model=copy)
    assert status == 1
    assert told["model"].startswith(f"wrong  model: {copy} cannot be used: ")
    assert told["model"].endswith("; correct QUIPU_MODEL or --model")
    (copy / "tokenizer.json").unlink()
    assert visit(model=copy)[1]["model"].startswith("wrong")
    assert visit(model=tmp_path / "nowhere")[1]["database"].startswith("ok")


def test_a_setting_that_cannot_be_is_wrong(visit: Doctor, home: Path) -> None:
    status, told = visit(environment={"HOME": str(home), "CODE_MEMORY_TOP_K": "many"})
    assert (status, told["settings"].partition(";")[0]) == (
        1,
        "wrong  settings: CODE_MEMORY_TOP_K is a whole number from 1 to 1000",
    )


@pytest.mark.parametrize(
    ("free", "grade", "told"),
    [
        (10 << 20, "wrong", "10 MiB are free; make room: below 64 MiB writes begin to fail"),
        (100 << 20, "hint", "100 MiB are free, too little for a copy of the database; make room for backups"),
        (5000 << 20, "ok", "5,000 MiB are free"),
    ],
)
def test_a_full_disk_is_told(
    visit: Doctor, config: Config, monkeypatch: pytest.MonkeyPatch, free: int, grade: str, told: str
) -> None:
    config.data.mkdir(mode=0o700)
    with config.file.open("wb") as file:
        file.truncate(60 << 20)
    monkeypatch.setattr("kernel.cli.doctor.shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    status, said = visit()
    assert said["disk"] == f"{grade:5}  disk: {told}"
    assert status == 1  # a file of zeros is no database


def test_an_engine_that_can_lose_pages_is_wrong(visit: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.cli.doctor.sqlite_version", lambda: 3051002)
    status, told = visit()
    assert status == 1
    assert told["engine"].startswith("wrong  engine: SQLite 3.51.2 can lose pages while checkpointing; ")


def test_another_program_on_the_port_is_named(visit: Doctor) -> None:
    with answering(404) as port:
        status, told = visit(port=port)
    assert status == 1
    assert f"(process {os.getpid()}) listens on 127.0.0.1:{port}, and is no Quipu; stop it, or give" in told["server"]


def test_a_program_that_never_answers_is_no_quipu(visit: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.cli.probe._SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        status, told = visit(port=silent.getsockname()[1])
    assert status == 1
    assert "and is no Quipu" in told["server"]


def test_another_release_and_one_that_asks_for_a_key_are_told(visit: Doctor) -> None:
    other = msgspec.json.encode({"result": {"serverInfo": {"name": "quipu", "version": "0.0.9"}}})
    with answering(200, other) as port:
        status, told = visit(port=port)
    assert (status, told["server"]) == (
        0,
        f"hint   server: Quipu 0.0.9 listens on 127.0.0.1:{port}, this is {VERSION}; start it again with this program",
    )
    with answering(401) as port:
        assert visit(port=port)[1]["server"] == f"ok     server: one that asks for a key listens on 127.0.0.1:{port}"


NOW = "2026-01-02T00:00:00.000Z"


@pytest.mark.parametrize(
    ("made", "changes", "told"),
    [
        ("", {}, "ok     keys: none made: this machine comes in without"),
        ("active", {}, "ok     keys: 1 made"),
        ("active", {"host": "0.0.0.0"}, "ok     keys: 1 made"),
        ("revoked", {}, "wrong  keys: all have ended or were taken back: nobody comes in; `quipu key create`"),
        ("", {"host": "0.0.0.0"}, "wrong  keys: a server on 0.0.0.0 starts with keys only; `quipu key create`"),
        (
            "",
            {"host": "0.0.0.0", "open": True},
            "hint   keys: whoever reaches 0.0.0.0 reads and writes; leave QUIPU_OPEN out",
        ),
        ("unreadable", {}, "wrong  keys: keys.json cannot be read, so no caller can be authenticated.; "),
    ],
)
def test_who_comes_in_is_told(visit: Doctor, config: Config, made: str, changes: dict[str, Any], told: str) -> None:
    if made in ("active", "revoked"):
        key, _ = api_keys.create(config.data, api_keys.Key("", "read", NOW))
        if made == "revoked":
            api_keys.revoke(config.data, key.id, NOW)
    elif made:
        config.data.mkdir(mode=0o700)
        (config.data / "keys.json").write_text("{")
    assert visit(**changes)[1]["keys"].startswith(told)


def test_a_client_whose_key_is_none_is_wrong(visit: Doctor, config: Config, home: Path) -> None:
    key, secret = api_keys.create(config.data, api_keys.Key("", "read", NOW))

    def told(bearer: str) -> str:
        headers = {"headers": {"Authorization": f"Bearer {bearer}"}} if bearer else {}
        write(home, "cursor", servers({"url": "http://127.0.0.1:7000/mcp", **headers}))
        return visit(port=7000)[1]["Cursor"]

    ended = "wrong  Cursor: its key has ended, was taken back, or is none of ours; make one with `quipu key create` "
    assert told(secret) == "ok     Cursor: points to http://127.0.0.1:7000/mcp"
    assert told("").startswith("wrong  Cursor: its entry has no key, and the server asks for one; make one with")
    assert told(secret[:-1] + "!").startswith(ended)
    api_keys.revoke(config.data, key.id, NOW)
    assert told(secret).startswith(ended)


def test_the_databases_of_all_tenants_are_looked_at(visit: Doctor, kernel: Kernel) -> None:
    other = kernel.config._replace(tenant="acme")
    other.home.mkdir(parents=True)
    no_database(other.file)
    status, told = visit()
    assert status == 1
    assert told["database"].startswith("ok")
    assert told["database of acme"].startswith("wrong  database of acme: The file is damaged: file is not a database")
    assert "database" not in visit(tenant="acme")[1]


@pytest.mark.parametrize(
    ("entry", "mode", "grade", "told"),
    [
        ({"url": "http://127.0.0.1:1/mcp"}, 0o600, "hint", "points to http://127.0.0.1:1/mcp, not to port 7000"),
        ({"url": "https://h.example:7000/mcp"}, 0o600, "hint", "points to https://h.example:7000/mcp, not to port"),
        ({"url": "http://[::1"}, 0o600, "hint", "points to http://[::1, not to port"),
        ({"url": "http://[::1]:7000/mcp"}, 0o644, "ok", "points to http://[::1]:7000/mcp"),
        (
            {"url": "http://127.0.0.1:7000/mcp", "headers": {"Authorization": "Bearer k"}},
            0o644,
            "hint",
            "others may read the key in ",
        ),
        ({"command": "/nowhere/quipu", "args": ["stdio"]}, 0o600, "wrong", "{file} starts /nowhere/quipu, which is no"),
        ({"command": "sh", "args": ["stdio", "--data", "/a"]}, 0o600, "hint", "its memories are in /a, not in "),
        ({"command": "sh", "args": ["stdio"]}, 0o600, "ok", "starts sh stdio"),
    ],
)
def test_each_client_is_told_of(visit: Doctor, home: Path, entry: object, mode: int, grade: str, told: str) -> None:
    file = write(home, "cursor", servers(entry), mode)
    write(home, "zed", "{}")
    status, said = visit(port=7000)
    assert said["Cursor"].startswith(f"{grade:5}  Cursor: {told.replace('{file}', str(file))}")
    assert ("clients" in said, "Zed" in said) == (False, False)
    assert status == (1 if grade == "wrong" or said["server"].startswith("wrong") else 0)


def test_a_configuration_that_cannot_be_read_is_a_hint(visit: Doctor, home: Path) -> None:
    file = write(home, "codex", "a = ")
    status, told = visit()
    assert status == 0
    assert told["Codex"].startswith(f"hint   Codex: {file} cannot be read: invalid TOML: ")

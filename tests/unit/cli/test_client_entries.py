"""What an entry points to, and what happens to the file it goes into."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kernel.cli.client_entries import Done, Program, apply, find, over_http, over_stdio, program, snippet
from kernel.cli.clients import BY_NAME, Target
from kernel.config import Config
from kernel.errors import Fault
from tests.reliability.server_process import ROOT

CURSOR, CODEX, OPENCODE = BY_NAME["cursor"], BY_NAME["codex"], BY_NAME["opencode"]
ENTRY = {"url": "http://127.0.0.1:7847/mcp"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "client" / "mcp.json"


def kept(file: Path, content: str, mode: int = 0o644) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode())
    file.chmod(mode)
    return file


def names(file: Path) -> list[str]:
    return sorted(beside.name for beside in file.parent.iterdir())


def test_a_new_file_is_its_owners_alone_and_left_alone_the_second_time(file: Path) -> None:
    assert apply(CURSOR, file, "quipu", ENTRY) == Done(changed=True)
    assert (
        file.read_text()
        == snippet(CURSOR, "quipu", ENTRY)
        == '{\n  "mcpServers": {\n    "quipu": {\n' + ('      "url": "http://127.0.0.1:7847/mcp"\n    }\n  }\n}\n')
    )
    assert file.stat().st_mode & 0o777 == 0o600
    once = file.stat()
    assert apply(CURSOR, file, "quipu", ENTRY) == Done(changed=False)
    assert file.stat() == once
    assert names(file) == ["mcp.json"]


def test_what_was_there_stays_and_is_copied_first(file: Path) -> None:
    before = '{"mcpServers": {"other": {"command": "x"}}, "more": [1, 2]}'
    done = apply(CURSOR, kept(file, before, 0o640), "quipu", ENTRY)
    assert done.backup is not None
    assert re.fullmatch(r"mcp\.json\.[0-9TZ-]+\.bak", done.backup.name)
    assert (done.backup.read_text(), done.backup.stat().st_mode & 0o777) == (before, 0o640)
    assert file.stat().st_mode & 0o777 == 0o640
    assert json.loads(file.read_text()) == {"mcpServers": {"other": {"command": "x"}, "quipu": ENTRY}, "more": [1, 2]}
    assert names(file) == ["mcp.json", done.backup.name]


def test_a_link_to_the_file_stays_a_link(file: Path, tmp_path: Path) -> None:
    real = kept(tmp_path / "dotfiles" / "mcp.json", "{}")
    file.parent.mkdir()
    file.symlink_to(real)
    assert apply(CURSOR, file, "quipu", ENTRY).changed
    assert file.is_symlink()
    assert find(CURSOR, real, "quipu") == ENTRY


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"mcpServers": ', "invalid JSON at line 1, column 16"),
        (b'{"mcpServers": []}', "mcpServers is not an object"),
        (b'"text"', "the document is not an object"),
        (b"\xff\xfe{\0", "it is no UTF-8"),
    ],
)
def test_a_file_that_cannot_be_understood_is_left_as_it_is(file: Path, content: bytes, told: str) -> None:
    kept(file, "").write_bytes(content)
    with pytest.raises(Fault) as caught:
        apply(CURSOR, file, "quipu", ENTRY)
    assert caught.value.message.startswith(f"{file} was left as it is: {told}")
    assert file.read_bytes() == content
    assert names(file) == ["mcp.json"]


def test_a_file_that_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"Cannot read .*: Is a directory"):
        apply(CURSOR, tmp_path, "quipu", ENTRY)
    kept(tmp_path / "file", "")
    with pytest.raises(Fault, match=r"Cannot (read|write) .*: (Not a directory|File exists)"):
        apply(CURSOR, tmp_path / "file" / "mcp.json", "quipu", ENTRY)


def test_somebody_elses_change_meanwhile_is_not_overwritten(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(file, "{}")

    def meanwhile(*_: object) -> None:
        file.write_text('{"theirs": 1}')

    monkeypatch.setattr("kernel.cli.client_entries.os.fsync", meanwhile)
    with pytest.raises(Fault, match="was changed by somebody else just now: try again") as caught:
        apply(CURSOR, file, "quipu", ENTRY)
    assert caught.value.code == "conflict"
    assert file.read_text() == '{"theirs": 1}'


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "ä", "a\n"])
def test_a_name_is_one_that_every_client_takes(file: Path, name: str) -> None:
    with pytest.raises(Fault, match="A name is 1 to 64 letters"):
        apply(CURSOR, file, name, ENTRY)
    assert not file.exists()


def entry_after(client: Any, file: Path, old: dict[str, Any], new: dict[str, Any]) -> Any:
    kept(file, json.dumps({client.keys[0]: {"quipu": old}}))
    apply(client, file, "quipu", new)
    return find(client, file, "quipu")


def test_what_others_wrote_into_an_entry_stays_while_it_is_of_the_same_kind(file: Path) -> None:
    old = {"url": "http://old/mcp", "headers": {"Authorization": "Bearer old"}, "disabled": False}
    assert entry_after(CURSOR, file, old, ENTRY) == {**ENTRY, "disabled": False}
    command = {"command": "q", "args": ["stdio"], "env": {"A": "1"}}
    assert entry_after(CURSOR, file, old, command) == command
    assert entry_after(CURSOR, file, {"command": "p", "env": {"A": "0", "B": "2"}}, command) == {
        **command,
        "env": {"A": "1", "B": "2"},
    }
    assert entry_after(CURSOR, file, {"command": "p", "env": "none"}, command) == command


def test_opencode_has_its_servers_where_its_file_has_them(file: Path) -> None:
    kept(file, '{"mcp": {"servers": {}}}')
    apply(OPENCODE, file, "quipu", ENTRY)
    assert json.loads(file.read_text()) == {"mcp": {"servers": {"quipu": ENTRY}}}
    kept(file, '{"mcp": {"other": {}}}')
    apply(OPENCODE, file, "quipu", ENTRY)
    assert json.loads(file.read_text()) == {"mcp": {"other": {}, "quipu": ENTRY}}


def test_an_entry_is_found_only_where_there_is_one(file: Path) -> None:
    for content in ("", "{}", '{"mcpServers": 1}', '{"mcpServers": {"quipu": []}}', "[]"):
        assert find(CURSOR, kept(file, content), "quipu") is None
    assert find(CODEX, kept(file, "[mcp_servers.quipu]\nurl = 'u'"), "quipu") == {"url": "u"}


@pytest.mark.parametrize(
    ("url", "dialects", "found"),
    [
        ("http://127.0.0.1:7847/mcp", (), "http://127.0.0.1:7847/mcp"),
        ("http://127.0.0.1:7847/mcp/", ("brain",), "http://127.0.0.1:7847/mcp/brain"),
        ("https://h.example/q/mcp?tools=read", ("brain",), "https://h.example/q/mcp/brain?tools=read"),
        ("http://[::1]:7847/mcp", (), "http://[::1]:7847/mcp"),
    ],
)
def test_an_address_leads_to_a_dialect(url: str, dialects: tuple[str, ...], found: str) -> None:
    assert over_http(url, "k", dialects) == Target(url=found, key="k")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:7847",
        "ftp://h/mcp",
        "http:///mcp",
        "http://h/ mcp",
        "http://h/\n",
        "http://[::1/mcp",
        "http://h:x/mcp",
    ],
)
def test_an_address_that_no_client_could_use_is_refused(url: str) -> None:
    with pytest.raises(Fault, match="is no address of a server"):
        over_http(url, "", ())


@pytest.mark.parametrize("key", ["a b", "ä", "a\n", "x" * 1025])
def test_a_key_is_one_that_a_header_can_hold(key: str) -> None:
    with pytest.raises(Fault, match="A key is printable ASCII without blanks"):
        over_http("http://h/mcp", key, ())


def test_an_address_has_one_dialect() -> None:
    with pytest.raises(Fault, match="An address has one dialect or all"):
        over_http("http://h/mcp", "", ("brain", "notes"))


def test_a_server_that_a_client_starts_has_the_settings_of_now(tmp_path: Path) -> None:
    environment = {
        "HOME": "/u",
        "QUIPU_DATA": "x",
        "QUIPU_MODEL": "none",
        "QUIPU_DIALECTS": "brain",
        "QUIPU_GROUP": "9",
        "CODE_MEMORY_TOP_K": "3",
        "QUIPU_EMPTY": "",
        "SECRET": "s",
        "QUIPU_OPEN": "1",
        "QUIPU_TENANT": "a",
    }
    config = Config(tmp_path / "d", model=None, dialects=("brain",), tenant="acme", environment=environment)
    started = Program(("python", "-m", "kernel"), {"PYTHONPATH": "/q"})
    assert over_stdio(config, started, "linux", ()) == Target(
        command=(
            *("python", "-m", "kernel", "stdio", "--data", str(tmp_path / "d")),
            *("--model", "none", "--tenant", "acme", "--dialect", "brain"),
        ),
        env={"PYTHONPATH": "/q", "CODE_MEMORY_TOP_K": "3", "QUIPU_GROUP": "9"},
    )
    plain = Config(Path("/u/.local/share/quipu"), environment={"HOME": "/u"})
    assert over_stdio(plain, Program(("quipu",)), "linux", ("notes", "paths")).command == (
        *("quipu", "stdio", "--dialect", "notes", "--dialect", "paths"),
    )


def test_the_program_is_started_as_it_was(tmp_path: Path) -> None:
    def started(script: str, *, frozen: bool = False, **values: str) -> Program:
        return program(script, "/v/python", values, frozen=frozen)

    clone = Program(("/v/python", "-m", "kernel"), {"PYTHONPATH": str(ROOT)})
    assert started(str(ROOT / "kernel" / "__main__.py")) == clone
    assert started("/v/site-packages/pytest/__main__.py") == clone
    assert started("/v/site-packages/quipu_memory/__main__.py") == Program(("/v/python", "-m", "quipu_memory"))
    script = kept(tmp_path / "quipu", "", 0o755)
    assert started(str(script)) == Program((str(script),))
    assert started("/x", frozen=True) == Program(("/v/python",))
    assert started("/x", frozen=True, QUIPU_PROGRAM="/opt/quipu.run") == Program(("/opt/quipu.run",))

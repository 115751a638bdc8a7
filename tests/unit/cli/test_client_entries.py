"""Targets of entries, and edits of the client files that hold them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.cli import client_entries
from kernel.cli.client_entries import (
    ApplyResult,
    LaunchCommand,
    apply_entry,
    find_entry,
    http_target,
    launch_command,
    remove_entry,
    snippet,
    stdio_target,
)
from kernel.cli.clients import BY_NAME, Target
from kernel.core.config import Config, from_mapping
from kernel.core.errors import Fault
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


def test_new_file_is_private_and_unchanged_by_a_second_run(file: Path) -> None:
    assert apply_entry(CURSOR, file, "quipu", ENTRY) == ApplyResult(changed=True)
    assert (
        file.read_text()
        == snippet(CURSOR, "quipu", ENTRY)
        == '{\n  "mcpServers": {\n    "quipu": {\n' + ('      "url": "http://127.0.0.1:7847/mcp"\n    }\n  }\n}\n')
    )
    assert file.stat().st_mode & 0o777 == 0o600
    once = file.stat()
    assert apply_entry(CURSOR, file, "quipu", ENTRY) == ApplyResult(changed=False)
    assert file.stat() == once
    assert names(file) == ["mcp.json"]


def test_existing_content_is_kept_and_backed_up(file: Path) -> None:
    before = '{"mcpServers": {"other": {"command": "x"}}, "more": [1, 2]}'
    done = apply_entry(CURSOR, kept(file, before, 0o640), "quipu", ENTRY)
    assert done.backup is not None
    assert re.fullmatch(r"mcp\.json\.[0-9TZ-]+\.bak", done.backup.name)
    assert (done.backup.read_text(), done.backup.stat().st_mode & 0o777) == (before, 0o640)
    assert file.stat().st_mode & 0o777 == 0o640
    assert json.loads(file.read_text()) == {"mcpServers": {"other": {"command": "x"}, "quipu": ENTRY}, "more": [1, 2]}
    assert names(file) == ["mcp.json", done.backup.name]


def test_the_first_and_the_newest_two_backups_are_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.parent.mkdir(parents=True)
    own = file.with_name("mcp.json.bak")
    own.write_text("mine")
    for day in range(1, 6):
        file.write_text(f'{{"day": {day}}}')
        monkeypatch.setattr(client_entries, "backup_time", lambda day=day: f"2026-01-0{day}T080000000Z")
        assert apply_entry(CURSOR, file, "quipu", ENTRY).changed
    kept_ = [f"mcp.json.2026-01-0{day}T080000000Z.bak" for day in (1, 4, 5)]
    assert names(file) == ["mcp.json", *kept_, "mcp.json.bak"]


def test_symbolic_link_to_the_file_is_kept(file: Path, tmp_path: Path) -> None:
    real = kept(tmp_path / "dotfiles" / "mcp.json", "{}")
    file.parent.mkdir()
    file.symlink_to(real)
    assert apply_entry(CURSOR, file, "quipu", ENTRY).changed
    assert file.is_symlink()
    assert find_entry(CURSOR, real, "quipu") == ENTRY


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"mcpServers": ', "invalid JSON at line 1, column 16"),
        (b'{"mcpServers": []}', "mcpServers is not an object"),
        (b'"text"', "the document is not an object"),
        (b"\xff\xfe{\0", "it is not UTF-8"),
    ],
)
def test_unparsable_file_is_not_changed(file: Path, content: bytes, message: str) -> None:
    kept(file, "").write_bytes(content)
    with pytest.raises(Fault) as caught:
        apply_entry(CURSOR, file, "quipu", ENTRY)
    assert caught.value.message.startswith(f"{file} was not changed: {message}")
    assert file.read_bytes() == content
    assert names(file) == ["mcp.json"]


@pytest.mark.parametrize(
    "content", ['{"mcpServers": {},}', '{"mcpServers": {} // theirs\n}', "// theirs\n", '\ufeff{"a": [1,]}']
)
def test_file_of_a_client_without_json_extensions_is_refused_where_it_has_them(file: Path, content: str) -> None:
    desktop = BY_NAME["claude-desktop"]
    message = r"invalid JSON at line \d, column \d+: it may hold neither comments nor trailing commas"
    edits: list[Callable[[Path], object]] = [
        lambda file: find_entry(desktop, file, "quipu"),
        lambda file: apply_entry(desktop, file, "quipu", ENTRY),
        lambda file: remove_entry(desktop, file, "quipu"),
    ]
    for edit in edits:
        with pytest.raises(Fault, match=message):
            edit(kept(file, content))
        assert file.read_text() == content
    assert find_entry(CURSOR, file, "quipu") is None
    for plain in ("", " \r\n", '\ufeff{"mcpServers": {}}'):
        assert apply_entry(desktop, kept(file, plain), "quipu", ENTRY).changed
        assert json.loads(file.read_text().lstrip("\ufeff"))["mcpServers"] == {"quipu": ENTRY}


def test_unreadable_or_unwritable_file_raises_a_fault(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"Cannot read .*: Is a directory"):
        apply_entry(CURSOR, tmp_path, "quipu", ENTRY)
    kept(tmp_path / "file", "")
    with pytest.raises(Fault, match=r"Cannot (read|write) .*: (Not a directory|File exists)"):
        apply_entry(CURSOR, tmp_path / "file" / "mcp.json", "quipu", ENTRY)


def test_concurrent_change_is_not_overwritten(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(file, "{}")

    def meanwhile(*_: object) -> None:
        file.write_text('{"theirs": 1}')

    monkeypatch.setattr("kernel.cli.client_entries.os.fsync", meanwhile)
    with pytest.raises(Fault, match="was changed by another program meanwhile: try again") as caught:
        apply_entry(CURSOR, file, "quipu", ENTRY)
    assert caught.value.code == "conflict"
    assert file.read_text() == '{"theirs": 1}'


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "ä", "a\n"])
def test_invalid_entry_name_is_refused(file: Path, name: str) -> None:
    with pytest.raises(Fault, match="A name is 1 to 64 letters"):
        apply_entry(CURSOR, file, name, ENTRY)
    assert not file.exists()


def entry_after(client: Any, file: Path, old: dict[str, Any], new: dict[str, Any]) -> Any:
    kept(file, json.dumps({client.keys[0]: {"quipu": old}}))
    apply_entry(client, file, "quipu", new)
    return find_entry(client, file, "quipu")


def test_other_members_of_an_entry_are_kept_and_variables_for_the_same_transport(file: Path) -> None:
    old = {"url": "http://old/mcp", "headers": {"Authorization": "Bearer old"}, "disabled": False}
    assert entry_after(CURSOR, file, old, ENTRY) == {**ENTRY, "disabled": False}
    command = {"command": "q", "args": ["stdio"], "env": {"A": "1"}}
    assert entry_after(CURSOR, file, old, command) == {"disabled": False, **command}
    assert entry_after(CURSOR, file, {"command": "p", "env": {"A": "0", "B": "2"}}, command) == {
        **command,
        "env": {"A": "1", "B": "2"},
    }
    assert entry_after(CURSOR, file, {"command": "p", "env": "none"}, command) == command


def test_opencode_entry_goes_where_the_file_has_servers(file: Path) -> None:
    kept(file, '{"mcp": {"servers": {}}}')
    apply_entry(OPENCODE, file, "quipu", ENTRY)
    assert json.loads(file.read_text()) == {"mcp": {"servers": {"quipu": ENTRY}}}
    kept(file, '{"mcp": {"other": {}}}')
    apply_entry(OPENCODE, file, "quipu", ENTRY)
    assert json.loads(file.read_text()) == {"mcp": {"other": {}, "quipu": ENTRY}}


def test_find_entry_ignores_values_that_are_not_objects(file: Path) -> None:
    for content in ("", "{}", '{"mcpServers": 1}', '{"mcpServers": {"quipu": []}}', "[]"):
        assert find_entry(CURSOR, kept(file, content), "quipu") is None
    assert find_entry(CODEX, kept(file, "[mcp_servers.quipu]\nurl = 'u'"), "quipu") == {"url": "u"}


@pytest.mark.parametrize(
    ("url", "dialects", "found"),
    [
        ("http://127.0.0.1:7847/mcp", (), "http://127.0.0.1:7847/mcp"),
        ("http://127.0.0.1:7847/mcp/", ("brain",), "http://127.0.0.1:7847/mcp/brain"),
        ("https://h.example/q/mcp?tools=read", ("brain",), "https://h.example/q/mcp/brain?tools=read"),
        ("http://127.0.0.1:7847/mcp", ("paths", "common"), "http://127.0.0.1:7847/mcp/paths,common"),
        ("http://[::1]:7847/mcp", (), "http://[::1]:7847/mcp"),
    ],
)
def test_url_is_extended_by_the_dialect(url: str, dialects: tuple[str, ...], found: str) -> None:
    assert http_target(url, "k", dialects) == Target(url=found, key="k")


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
def test_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(Fault, match="is not a server URL"):
        http_target(url, "", ())


@pytest.mark.parametrize("key", ["a b", "ä", "a\n", "x" * 1025])
def test_key_that_does_not_fit_a_header_is_refused(key: str) -> None:
    with pytest.raises(Fault, match="A key is printable ASCII without spaces"):
        http_target("http://h/mcp", key, ())


def test_data_directory_that_clients_would_not_find_is_passed_on(tmp_path: Path) -> None:
    config = from_mapping({"HOME": "/home/ada", "XDG_DATA_HOME": str(tmp_path)})
    target = stdio_target(config, LaunchCommand(("quipu",)), "linux", ())
    assert target.command == ("quipu", "stdio", "--data", str(tmp_path / "quipu"))


def test_program_in_the_cache_of_uv_is_started_by_uvx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    script = "/home/ada/.cache/uv/archive-v0/jcDx0l6Me1So7JHq/bin/quipu-memory"
    assert launch_command(script, "/usr/bin/python3", {}, frozen=False).words == ("uvx", "quipu-memory")


def test_program_that_uvx_installed_from_a_wheel_is_started_from_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "quipu_memory-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.4\nName: quipu-memory\nVersion: 1.0\n")
    (folder / "direct_url.json").write_text('{"url":"file:///w/quipu_memory-1.0-py3-none-any.whl","archive_info":{}}')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    script = "/home/ada/.cache/uv/archive-v0/jcDx0l6Me1So7JHq/bin/quipu-memory"
    words = launch_command(script, "/usr/bin/python3", {}, frozen=False).words
    assert words == ("uvx", "--from", "file:///w/quipu_memory-1.0-py3-none-any.whl", "quipu-memory")


def test_stdio_target_carries_the_settings_of_this_process(tmp_path: Path) -> None:
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
    started = LaunchCommand(("python", "-m", "kernel"), {"PYTHONPATH": "/q"})
    assert stdio_target(config, started, "linux", ()) == Target(
        command=(
            *("python", "-m", "kernel", "stdio", "--data", str(tmp_path / "d")),
            *("--model", "none", "--tenant", "acme", "--dialect", "brain"),
        ),
        env={"PYTHONPATH": "/q", "CODE_MEMORY_TOP_K": "3", "QUIPU_GROUP": "9"},
    )
    plain = Config(Path("/u/.local/share/quipu"), environment={"HOME": "/u"})
    assert stdio_target(plain, LaunchCommand(("quipu",)), "linux", ("notes", "paths")).command == (
        *("quipu", "stdio", "--dialect", "notes", "--dialect", "paths"),
    )


def test_launch_command_repeats_how_this_process_was_started(tmp_path: Path) -> None:
    def started(script: str, *, frozen: bool = False, **values: str) -> LaunchCommand:
        return launch_command(script, "/v/python", values, frozen=frozen)

    clone = LaunchCommand(("/v/python", "-P", "-m", "kernel"), {"PYTHONPATH": str(ROOT)})
    assert started(str(ROOT / "kernel" / "__main__.py")) == clone
    assert started("/v/site-packages/pytest/__main__.py") == clone
    assert started("/v/site-packages/quipu_memory/__main__.py") == LaunchCommand(
        ("/v/python", "-P", "-m", "quipu_memory")
    )
    script = kept(tmp_path / "quipu", "", 0o755)
    assert started(str(script)) == LaunchCommand((str(script),))
    assert started("/x", frozen=True) == LaunchCommand(("/v/python",))
    assert started("/x", frozen=True, QUIPU_PROGRAM="/opt/quipu.run") == LaunchCommand(("/opt/quipu.run",))

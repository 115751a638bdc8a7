"""The command that points clients at this server, run as people run it."""

import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernel import app
from kernel.cli.client_entries import find, points_to
from kernel.cli.clients import BY_NAME, CLIENTS, Client, file_of
from kernel.cli.main import main
from tests.reliability.server_process import ROOT

Told = tuple[int, str, str]
Quipu = Callable[..., Told]
OTHERS = {
    True: '# mine\n[mcp_servers.other]\ncommand = "x" # theirs\n',
    False: '// mine\n{{\n  // theirs\n  "{0}": {{\n    "other": {{"command": "x"}}, // one\n  }},\n}}\n',
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with nothing in it, and none of this machine's settings."""
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "COPILOT_HOME",
        "PORT",
        "QUIPU_DATA",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def quipu(capsys: pytest.CaptureFixture[str]) -> Quipu:
    """Status, standard output and standard error of a command line."""

    def command(*arguments: str) -> Told:
        status = main(list(arguments))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return command


def file(client: Client, home: Path) -> Path:
    return file_of(client, {"HOME": str(home)}, "linux")


def others(client: Client, home: Path) -> tuple[Path, str]:
    """A file in which somebody has another server already."""
    there = file(client, home)
    there.parent.mkdir(parents=True, exist_ok=True)
    before = OTHERS[client.toml].format(client.keys[0])
    there.write_text(before)
    return there, before


WAYS = [("--url", "http://127.0.0.1:9/mcp", "--key", "k"), ("--stdio", "--dialect", "brain", "--dialect", "notes")]


@pytest.mark.parametrize("way", WAYS, ids=["http", "stdio"])
@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_a_second_run_changes_no_byte_and_other_servers_stay(
    home: Path, quipu: Quipu, client: Client, way: tuple[str, ...]
) -> None:
    there, before = others(client, home)
    status, printed, _ = quipu("setup", "--client", client.name, *way)
    if client.http is None and way is WAYS[0]:
        assert (status, there.read_text()) == (1, before)
        return
    after = there.read_bytes()
    (backup,) = (beside for beside in there.parent.iterdir() if beside != there)
    assert backup.read_text() == before
    assert (status, printed) == (
        0,
        f"{client.title}: quipu is in {there}; what was there is in {backup.name}\n"
        f"Start {client.title} again to use it.\n",
    )
    assert quipu("setup", "--client", client.name, *way) == (0, f"{client.title}: {there} says so already\n", "")
    assert there.read_bytes() == after
    assert len(list(there.parent.iterdir())) == 2
    assert find(client, there, "other") == {"command": "x"}
    kept = [line for line in before.splitlines() if line.strip(" }")]
    assert [line for line in after.decode().splitlines() if line in kept] == kept


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_what_is_printed_is_what_would_be_written(home: Path, quipu: Quipu, client: Client) -> None:
    status, printed, told = quipu("setup", "--client", client.name, "--print")
    assert (status, told) == (0, f"goes into {file(client, home)}\n")
    assert not home.exists()
    assert quipu("setup", "--client", client.name)[0] == 0
    assert file(client, home).read_text() == printed


def test_a_client_that_only_starts_servers_gets_one_to_start(home: Path, quipu: Quipu) -> None:
    client = BY_NAME["claude-desktop"]
    assert quipu("setup", "--client", "claude-desktop", "--dialect", "brain")[0] == 0
    entry = find(client, file(client, home), "quipu")
    assert entry is not None
    assert (entry["command"], entry["args"][-3:]) == (sys.executable, ["stdio", "--dialect", "brain"])
    told = "quipu: Claude Desktop starts its servers itself: use --stdio, without --url and --key\n"
    assert quipu("setup", "--client", "claude-desktop", "--key", "k") == (1, "", told)


def test_the_server_that_a_client_starts_answers(home: Path, quipu: Quipu, tmp_path: Path) -> None:
    quipu("setup", "--client", "claude-desktop", "--data", str(tmp_path / "data"), "--dialect", "paths")
    client = BY_NAME["claude-desktop"]
    entry: Any = find(client, file(client, home), "quipu")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + b"\n"
    command = [entry["command"], *entry["args"]]
    done = subprocess.run(command, input=asked, capture_output=True, env=entry["env"], cwd=tmp_path, timeout=60)
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "quipu"
    assert (tmp_path / "data" / "quipu.db").exists()
    assert shlex.split(points_to(entry)) == command


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--client", "emacs"), f"emacs is not among the known clients: {', '.join(BY_NAME)}"),
        (("--client", "zed", "--stdio", "--url", "http://h/mcp"), "--url and --key are for a server that runs"),
        (("--client", "zed", "--data", "d"), "--data, --model and --tenant are for --stdio"),
        (("--client", "zed", "--dialect", "nobody"), "There is no dialect nobody"),
        (("--client", "zed", "--dialect", "brain", "--dialect", "notes"), "An address has one dialect or all"),
        (("--client", "zed", "--link"), "Zed has no such addresses"),
        (("--client", "zed", "--name", "a b"), "A name is 1 to 64 letters"),
        (("--client", "zed", "--url", "nowhere"), "nowhere is no address of a server"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(quipu: Quipu, arguments: tuple[str, ...], told: str) -> None:
    status, printed, error = quipu("setup", *arguments)
    assert (status, printed) == (1, "")
    assert error.startswith(f"quipu: {told}")
    assert error.count("\n") == 1


@pytest.mark.usefixtures("home")
def test_a_key_may_come_from_standard_input(quipu: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    _, printed, _ = quipu("setup", "--client", "cursor", "--key", "-", "--print")
    assert json.loads(printed)["mcpServers"]["quipu"]["headers"] == {"Authorization": "Bearer secret"}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("url", "warned"), [("http://127.0.0.1/mcp", 0), ("https://h.example/mcp", 0), ("http://h.example/mcp", 1)]
)
def test_a_key_that_would_cross_the_network_in_the_clear_is_warned_of(quipu: Quipu, url: str, warned: int) -> None:
    *_, told = quipu("setup", "--client", "cursor", "--key", "k", "--url", url, "--print")
    assert told.count("the key will cross the network in the clear") == warned


def test_a_server_that_asks_for_a_key_is_not_set_up_without_a_word(
    home: Path, quipu: Quipu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIPU_DATA", str(home / "data"))
    assert quipu("setup", "--client", "cursor")[2] == ""
    assert quipu("key", "create", "--scope", "read")[0] == 0
    assert quipu("setup", "--client", "cursor") == (
        0,
        f"Cursor: {file(BY_NAME['cursor'], home)} says so already\n",
        "the server asks for a key: make one with `quipu key create`, and give it with --key\n",
    )
    for more in (("--key", "k"), ("--url", "http://h/mcp"), ("--stdio",)):
        assert quipu("setup", "--client", "cursor", *more)[::2] == (0, "")


@pytest.mark.usefixtures("home")
def test_a_public_address_is_the_one_that_clients_get(quipu: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_PUBLIC_URL", "https://memory.example/")
    _, printed, _ = quipu("setup", "--client", "cursor", "--dialect", "brain", "--print")
    assert json.loads(printed)["mcpServers"]["quipu"] == {"url": "https://memory.example/mcp/brain"}


def test_the_known_clients_are_listed_with_what_they_point_to(home: Path, quipu: Quipu) -> None:
    quipu("setup", "--client", "windsurf", "--url", "http://h/mcp")
    quipu("setup", "--client", "opencode", "--stdio", "--name", "other")
    file(BY_NAME["zed"], home).parent.mkdir(parents=True)
    file(BY_NAME["zed"], home).write_text("{")
    status, printed, _ = quipu("setup")
    told = {line.split()[0]: line[32:] for line in printed.splitlines()}
    assert (status, list(told)) == (0, list(BY_NAME))
    assert told["windsurf"] == f"{file(BY_NAME['windsurf'], home)}: http://h/mcp"
    assert told["opencode"] == f"{file(BY_NAME['opencode'], home)} has no quipu"
    assert told["zed"] == f"{file(BY_NAME['zed'], home)} cannot be read: invalid JSON at line 1, column 2"
    assert told["cursor"] == f"no configuration at {file(BY_NAME['cursor'], home)}"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("client", [client.name for client in CLIENTS if client.link])
def test_the_links_of_the_readme_are_those_that_are_printed(quipu: Quipu, client: str) -> None:
    _, link, _ = quipu("setup", "--client", client, "--link")
    shown = re.findall(r"`([a-z]+:[^`]*mcp[^`]*)`", (ROOT / "docs" / "clients.md").read_text(encoding="utf-8"))
    assert link.strip() in shown


def test_every_dialect_can_be_pointed_to(home: Path, quipu: Quipu) -> None:
    for dialect in app.DIALECTS:
        assert quipu("setup", "--client", "cursor", "--dialect", dialect.name, "--name", dialect.name)[0] == 0
    servers = json.loads(file(BY_NAME["cursor"], home).read_text())["mcpServers"]
    assert servers == {d.name: {"url": f"http://127.0.0.1:7847/mcp/{d.name}"} for d in app.DIALECTS}

"""`quipu setup`, run as from a shell."""

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

from kernel.cli import hook_files
from kernel.cli.client_entries import bearer_of, describe_target, find_entry
from kernel.cli.clients import BY_NAME, CLIENTS, Client, config_file, locate
from kernel.server import app
from tests.reliability.server_process import ROOT, serving

Output = tuple[int, str, str]
Quipu = Callable[..., Output]
OTHERS = {
    "toml": '# mine\n[mcp_servers.other]\ncommand = "x" # theirs\n',
    "json": '{{\n  "theirs": true,\n  "{0}": {{\n    "other": {{"command": "x"}}\n  }}\n}}\n',
    "jsonc": '// mine\n{{\n  // theirs\n  "{0}": {{\n    "other": {{"command": "x"}}, // one\n  }},\n}}\n',
}


def file(client: Client, home: Path) -> Path:
    return config_file(client, {"HOME": str(home)}, "linux")


def others(client: Client, home: Path) -> tuple[Path, str]:
    """A configuration file with the entry of another server."""
    there = file(client, home)
    there.parent.mkdir(parents=True, exist_ok=True)
    before = OTHERS[client.syntax].format(client.keys[0])
    there.write_text(before)
    return there, before


NOBODY = "nothing listens on 127.0.0.1:9: start it with `quipu serve`, or with `quipu service install` for good\n"
TRANSPORTS = [
    ("--url", "http://127.0.0.1:9/mcp", "--key", "k"),
    ("--stdio", "--dialect", "brain", "--dialect", "notes"),
]


@pytest.mark.parametrize("options", TRANSPORTS, ids=["http", "stdio"])
@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_second_run_changes_nothing_and_keeps_other_servers(
    home: Path, quipu: Quipu, client: Client, options: tuple[str, ...]
) -> None:
    there, before = others(client, home)
    status, printed, _ = quipu("setup", "--client", client.name, *options)
    if client.http is None and options is TRANSPORTS[0]:
        assert (status, there.read_text()) == (1, before)
        return
    after = there.read_bytes()
    (backup,) = (beside for beside in there.parent.iterdir() if beside != there)
    assert backup.read_text() == before
    assert (status, printed) == (
        0,
        f"{client.title}: quipu is in {there}; the previous content is in {backup.name}\n"
        f"Restart {client.title} to use it.\n",
    )
    again = (0, f"{client.title}: {there} is up to date\n", NOBODY if options is TRANSPORTS[0] else "")
    assert quipu("setup", "--client", client.name, *options) == again
    assert there.read_bytes() == after
    assert len(list(there.parent.iterdir())) == 2
    assert find_entry(client, there, "other") == {"command": "x"}
    kept = [line.rstrip(",") for line in before.splitlines() if line.strip(" },")]
    assert [line for line in (line.rstrip(",") for line in after.decode().splitlines()) if line in kept] == kept


def test_the_first_copy_of_a_file_and_the_newest_two_are_kept(home: Path, quipu: Quipu) -> None:
    there, before = others(CLIENTS[0], home)
    contents = [before]
    for dialect in ("paths", "brain", "scopes", "graph"):
        assert quipu("setup", "--client", CLIENTS[0].name, "--dialect", dialect)[0] == 0
        contents.append(there.read_text())
    copies = sorted(there.parent.glob(f"{there.name}.*.bak"))
    assert [copy.read_text() for copy in copies] == [contents[0], *contents[2:4]]


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_printed_entry_equals_the_written_one(home: Path, quipu: Quipu, client: Client) -> None:
    status, printed, error = quipu("setup", "--client", client.name, "--print")
    assert (status, error) == (0, f"goes into {file(client, home)}\n")
    assert not home.exists()
    assert quipu("setup", "--client", client.name)[0] == 0
    assert file(client, home).read_text() == printed


@pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
def test_removed_entry_leaves_the_other_servers(home: Path, quipu: Quipu, client: Client) -> None:
    there, _ = others(client, home)
    assert quipu("setup", "--client", client.name, "--remove")[1] == f"{client.title}: {there} has no quipu\n"
    quipu("setup", "--client", client.name, "--stdio")
    status, printed, error = quipu("setup", "--client", client.name, "--remove")
    assert (status, error) == (0, "")
    assert printed.startswith(f"{client.title}: quipu is removed from {there}; the previous content is in ")
    assert find_entry(client, there, "quipu") is None
    assert find_entry(client, there, "other") == {"command": "x"}
    assert "theirs" in there.read_text()


def test_all_clients_of_this_machine_are_configured_and_no_others(home: Path, quipu: Quipu) -> None:
    chosen = [BY_NAME[name] for name in ("cursor", "claude-desktop", "codex")]
    for client in chosen:
        others(client, home)
    assert quipu("setup", "--all")[0] == 0
    entries = {client.name: find_entry(client, file(client, home), "quipu") for client in CLIENTS}
    assert {name for name, entry in entries.items() if entry} == {client.name for client in chosen}
    assert entries["cursor"] == {"url": "http://127.0.0.1:9/mcp/paths,common"}
    assert quipu("setup", "--all", "--remove")[0] == 0
    assert [find_entry(client, file(client, home), "quipu") for client in chosen] == [None] * 3


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("options", "path"),
    [
        ((), "/mcp/paths,common"),
        (("--dialect", "common", "--dialect", "brain"), "/mcp/brain,common"),
        (("--dialect", "all"), "/mcp"),
        (("--url", "http://127.0.0.1:9/mcp"), "/mcp"),
        (("--url", "http://127.0.0.1:9/mcp", "--dialect", "notes"), "/mcp/notes"),
    ],
)
def test_address_has_the_chosen_dialects_or_the_two_for_newcomers(
    quipu: Quipu, options: tuple[str, ...], path: str
) -> None:
    _, printed, _ = quipu("setup", "--client", "cursor", "--print", *options)
    assert json.loads(printed)["mcpServers"]["quipu"] == {"url": f"http://127.0.0.1:9{path}"}


def test_disabled_entry_is_pointed_out(home: Path, quipu: Quipu) -> None:
    there = file(BY_NAME["kiro"], home)
    there.parent.mkdir(parents=True)
    there.write_text('{"mcpServers": {"quipu": {"command": "x", "disabled": true, "autoApprove": ["recall"]}}}')
    _, _, error = quipu("setup", "--client", "kiro")
    assert error.startswith("Kiro: quipu is disabled in that file; enable it there or in Kiro\n")
    entry = find_entry(BY_NAME["kiro"], there, "quipu")
    assert entry == {"disabled": True, "autoApprove": ["recall"], "url": "http://127.0.0.1:9/mcp/paths,common"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "told"),
    [("/mcp/paths,common", ""), ("/nowhere", "is not the address of a Quipu server: it answers with status 404\n")],
)
def test_address_of_a_running_server_is_checked(home: Path, quipu: Quipu, tmp_path: Path, path: str, told: str) -> None:
    with serving(tmp_path / "data") as server:
        _, _, error = quipu("setup", "--client", "cursor", "--url", f"http://127.0.0.1:{server.port}{path}")
    assert error == (f"http://127.0.0.1:{server.port}{path} {told}" if told else "")


def test_stdio_only_client_gets_a_command(home: Path, quipu: Quipu) -> None:
    client = BY_NAME["claude-desktop"]
    assert quipu("setup", "--client", "claude-desktop", "--dialect", "brain")[0] == 0
    entry = find_entry(client, file(client, home), "quipu")
    assert entry is not None
    assert (entry["command"], entry["args"][-3:]) == (sys.executable, ["stdio", "--dialect", "brain"])
    error = (
        "quipu: Claude Desktop supports only servers that it starts: use --stdio without --url and --key, or add the "
        "address as a connector in its settings\n"
    )
    assert quipu("setup", "--client", "claude-desktop", "--key", "k") == (1, "", error)


@pytest.mark.slow
def test_configured_command_starts_a_server(home: Path, quipu: Quipu, tmp_path: Path) -> None:
    quipu("setup", "--client", "claude-desktop", "--data", str(tmp_path / "data"), "--dialect", "paths")
    client = BY_NAME["claude-desktop"]
    entry: Any = find_entry(client, file(client, home), "quipu")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + b"\n"
    command = [entry["command"], *entry["args"]]
    done = subprocess.run(command, input=asked, capture_output=True, env=entry["env"], cwd=tmp_path, timeout=60)
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "quipu"
    assert (tmp_path / "data" / "quipu.db").exists()
    assert shlex.split(describe_target(entry)) == command


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--client", "emacs"), f"emacs is not a supported client: {', '.join(BY_NAME)}"),
        (("--client", "claude"), "claude is not a supported client: did you mean claude-code or claude-desktop?"),
        (("--client", "cusror"), "cusror is not a supported client: did you mean cursor?"),
        (("--client", "zed", "--stdio", "--url", "http://h/mcp"), "--url and --key are for a running server"),
        (("--client", "zed", "--data", "d"), "--data, --model and --tenant need --stdio"),
        (("--client", "zed", "--dialect", "unknown"), "There is no dialect unknown"),
        (("--client", "zed", "--all"), "--all is for every client of this machine"),
        (("--all",), "no supported client has a configuration on this machine"),
        (("--remove",), "--remove needs --client NAME or --all"),
        (("--client", "zed", "--link"), "Zed has no install links"),
        (("--client", "zed", "--name", "a b"), "A name is 1 to 64 letters"),
        (("--client", "zed", "--url", "nowhere"), "nowhere is not a server URL"),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(quipu: Quipu, arguments: tuple[str, ...], message: str) -> None:
    status, printed, error = quipu("setup", *arguments)
    assert (status, printed) == (1, "")
    assert error.startswith(f"quipu: {message}")
    assert error.count("\n") == 1


@pytest.mark.usefixtures("home")
def test_an_empty_standard_input_takes_no_key_out_of_an_entry(quipu: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert quipu("setup", "--client", "cursor", "--key", "-") == (1, "", "quipu: There is no key on standard input\n")


@pytest.mark.usefixtures("home")
def test_key_is_read_from_standard_input(quipu: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    _, printed, _ = quipu("setup", "--client", "cursor", "--key", "-", "--print")
    assert json.loads(printed)["mcpServers"]["quipu"]["headers"] == {"Authorization": "Bearer secret"}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("url", "warned"), [("http://127.0.0.1/mcp", 0), ("https://h.example/mcp", 0), ("http://h.example/mcp", 1)]
)
def test_unencrypted_key_is_warned_about(quipu: Quipu, url: str, warned: int) -> None:
    *_, error = quipu("setup", "--client", "cursor", "--key", "k", "--url", url, "--print")
    assert error.count("the key would be sent unencrypted") == warned


def test_missing_required_key_is_warned_about(home: Path, quipu: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_DATA", str(home / "data"))
    assert quipu("setup", "--client", "cursor")[2] == NOBODY
    assert quipu("key", "create", "--scope", "read")[0] == 0
    assert quipu("setup", "--client", "cursor") == (
        0,
        f"Cursor: {file(BY_NAME['cursor'], home)} is up to date\n",
        "the server requires a key: create one with `quipu key create --scope write` and pass it with --key\n" + NOBODY,
    )
    for more in (("--url", "http://127.0.0.1:9/mcp"), ("--key", "k"), ("--stdio",)):
        assert quipu("setup", "--client", "cursor", *more)[::2] == (0, "" if more == ("--stdio",) else NOBODY)


HTTP_CLIENTS = [client for client in CLIENTS if client.http]


@pytest.mark.parametrize("client", HTTP_CLIENTS, ids=[client.name for client in HTTP_CLIENTS])
def test_an_entry_that_is_written_again_keeps_its_key(home: Path, quipu: Quipu, client: Client) -> None:
    assert quipu("setup", "--client", client.name, "--key", "k")[0] == 0
    entry = find_entry(client, file(client, home), "quipu") or {}
    kept = f"{client.title}: the entry keeps its key; `quipu setup --client {client.name} --remove` takes out both\n"
    again = (0, f"{client.title}: {file(client, home)} is up to date\n", kept + NOBODY)
    assert quipu("setup", "--client", client.name) == again
    assert find_entry(client, file(client, home), "quipu") == entry
    assert quipu("setup", "--client", client.name, "--url", "http://localhost:9/mcp")[0] == 0
    assert bearer_of(find_entry(client, file(client, home), "quipu") or {}) == "k"
    assert quipu("setup", "--client", client.name, "--remove")[0] == 0
    assert quipu("setup", "--client", client.name)[::2] == (0, NOBODY)
    assert bearer_of(find_entry(client, file(client, home), "quipu") or {}) == ""


def test_an_entry_whose_address_is_none_is_written_again(home: Path, quipu: Quipu) -> None:
    quipu("setup", "--client", "cursor", "--key", "k")
    path = file(BY_NAME["cursor"], home)
    path.write_text(path.read_text(encoding="utf-8").replace("127.0.0.1:9", "["), encoding="utf-8")
    status, _, remark = quipu("setup", "--client", "cursor")
    message = "Cursor: the key for http://[/mcp/paths,common is not sent to another server: pass one with --key\n"
    assert (status, remark) == (0, message + NOBODY)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8/mcp", "https://127.0.0.1:9/mcp", "https://h.example:9/mcp"])
def test_a_key_is_not_sent_to_another_server(home: Path, quipu: Quipu, address: str) -> None:
    quipu("setup", "--client", "cursor", "--key", "k")
    warning = "Cursor: the key for 127.0.0.1:9 is not sent to another server: pass one with --key\n"
    assert quipu("setup", "--client", "cursor", "--url", address)[2].startswith(warning)
    assert find_entry(BY_NAME["cursor"], file(BY_NAME["cursor"], home), "quipu") == {"url": address}


def test_headers_of_the_user_are_kept_beside_a_new_key(home: Path, quipu: Quipu) -> None:
    quipu("setup", "--client", "cursor", "--key", "k")
    there = file(BY_NAME["cursor"], home)
    there.write_text(
        there.read_text().replace('"Authorization": "Bearer k"', '"X-Team": "a", "Authorization": "Bearer ${env:K}"')
    )
    for options, key in (((), "${env:K}"), (("--key", "new"), "new")):
        assert quipu("setup", "--client", "cursor", *options)[0] == 0
        entry = find_entry(BY_NAME["cursor"], there, "quipu") or {}
        assert entry["headers"] == {"X-Team": "a", "Authorization": f"Bearer {key}"}


def test_a_key_that_is_kept_does_for_the_warnings_and_hooks(
    home: Path, quipu: Quipu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIPU_DATA", str(home / "data"))
    assert quipu("key", "create", "--scope", "read")[0] == 0
    options = ("--client", "cursor", "--hooks", "prime")
    assert quipu("setup", *options, "--key", "k")[0] == 0
    hooks = (home / ".cursor/hooks.json").read_text()
    assert "--key-file" in hooks
    assert "requires a key" not in quipu("setup", *options)[2]
    assert (home / ".cursor/hooks.json").read_text() == hooks


@pytest.mark.parametrize(
    "options",
    [
        ("--dialect", "brain", "--key", "k", "--url", "http://127.0.0.1:9/mcp"),
        ("--dialect", "brain"),
        ("--stdio",),
        ("--url", "https://memory.example:9/mcp"),
    ],
    ids=["key", "dialect", "stdio", "elsewhere"],
)
@pytest.mark.parametrize("client", ["claude-code", "codex", "cursor", "gemini-cli", "opencode"])
def test_hooks_alone_leave_the_entry_as_it_is_and_go_to_its_server(
    home: Path, quipu: Quipu, client: str, options: tuple[str, ...]
) -> None:
    assert quipu("setup", "--client", client, *options)[0] == 0
    entry = file(BY_NAME[client], home)
    before = entry.read_bytes()
    here = f"{BY_NAME[client].title}: quipu stays as it is in {entry}: "
    for shown in ("--print", "--json"):
        status, printed, error = quipu("setup", "--client", client, "--hooks", "prime", shown)
        assert status == 0
        assert printed.startswith(here) == (shown == "--print")
        if client != "gemini-cli" or shown == "--print":  # whose hooks are in the same file
            assert entry.read_bytes() == before
    assert ("nothing listens on" in error) == ("--stdio" not in options)
    hooks = locate(hook_files.of_client(client).path, {"HOME": str(home)}, "linux").read_text()
    url = options[options.index("--url") + 1].removesuffix("/mcp") if "--url" in options else ""
    assert url in hooks
    assert ("--key-file" in hooks) == ("--key" in options)


@pytest.mark.usefixtures("home")
def test_an_address_elsewhere_is_not_to_be_started_here(quipu: Quipu) -> None:
    assert quipu("setup", "--client", "cursor", "--url", "http://memory.invalid:9/mcp")[2] == (
        "nothing listens on memory.invalid:9: start the server there, and the proxy or tunnel that has the name\n"
    )


@pytest.mark.usefixtures("home")
def test_entry_uses_the_public_url(quipu: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_PUBLIC_URL", "https://memory.example/")
    _, printed, _ = quipu("setup", "--client", "cursor", "--dialect", "brain", "--print")
    assert json.loads(printed)["mcpServers"]["quipu"] == {"url": "https://memory.example/mcp/brain"}


def test_supported_clients_are_listed_with_their_targets(home: Path, quipu: Quipu) -> None:
    quipu("setup", "--client", "windsurf", "--url", "http://127.0.0.1:9/mcp")
    quipu("setup", "--client", "opencode", "--stdio", "--name", "other")
    file(BY_NAME["zed"], home).parent.mkdir(parents=True)
    file(BY_NAME["zed"], home).write_text("{")
    status, printed, _ = quipu("setup")
    shown = {line.split()[0]: line[32:] for line in printed.splitlines()}
    assert (status, list(shown)) == (0, list(BY_NAME))
    assert shown["windsurf"] == f"{file(BY_NAME['windsurf'], home)}: http://127.0.0.1:9/mcp"
    assert shown["opencode"] == f"{file(BY_NAME['opencode'], home)} has no quipu"
    assert shown["zed"] == f"{file(BY_NAME['zed'], home)} cannot be read: invalid JSON at line 1, column 2"
    assert shown["cursor"] == f"no configuration at {file(BY_NAME['cursor'], home)}"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("client", [client.name for client in CLIENTS if client.install_link])
def test_readme_install_links_match_the_printed_ones(
    quipu: Quipu, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    monkeypatch.delenv("PORT")
    _, link, _ = quipu("setup", "--client", client, "--link")
    shown = re.findall(r"`([a-z]+:[^`]*mcp[^`]*)`", (ROOT / "docs" / "clients.md").read_text(encoding="utf-8"))
    assert link.strip() in shown


def test_every_dialect_can_be_configured(home: Path, quipu: Quipu) -> None:
    for dialect in app.DIALECTS:
        assert quipu("setup", "--client", "cursor", "--dialect", dialect.name, "--name", dialect.name)[0] == 0
    servers = json.loads(file(BY_NAME["cursor"], home).read_text())["mcpServers"]
    assert servers == {d.name: {"url": f"http://127.0.0.1:9/mcp/{d.name}"} for d in app.DIALECTS}


STARTED = (
    {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
    {"command": "cmd", "args": ["/c", "npx", "-y", "@modelcontextprotocol/server-memory@latest"]},
    {"command": "/usr/local/bin/mcp-server-memory"},
    {"command": "node", "args": ["C:\\src\\server-memory\\dist\\index.js"]},
    {"command": "docker", "args": ["run", "-i", "--rm", "mcp/memory:latest"]},
)


@pytest.mark.parametrize("entry", STARTED, ids=lambda entry: " ".join([entry["command"], *entry.get("args", ())]))
def test_the_entry_of_the_server_that_is_replaced_keeps_its_name(home: Path, quipu: Quipu, entry: Any) -> None:
    config = file(BY_NAME["cursor"], home)
    config.parent.mkdir(parents=True)
    other = {"command": "npx", "args": ["server-memory-tools"]}
    config.write_text(
        json.dumps({"mcpServers": {"other": other, "memory": {**entry, "env": {"MEMORY_FILE_PATH": "m"}}}})
    )

    assert quipu("setup", "--client", "cursor", "--dialect", "graph", "--replace", "server-memory")[0] == 0

    servers = json.loads(config.read_text())["mcpServers"]
    assert servers == {"other": other, "memory": {"url": "http://127.0.0.1:9/mcp/graph"}}


def test_without_the_server_that_is_replaced_nothing_is_written(home: Path, quipu: Quipu) -> None:
    config = file(BY_NAME["cursor"], home)
    config.parent.mkdir(parents=True)
    config.write_text('{"mcpServers": {"other": {"command": "x"}}}')

    status, _, told = quipu("setup", "--client", "cursor", "--dialect", "graph", "--replace", "server-memory")

    assert (status, told) == (1, f"quipu: {config} starts no server-memory: nothing to replace\n")
    assert config.read_text() == '{"mcpServers": {"other": {"command": "x"}}}'
    assert "--replace" in quipu("setup", "--client", "cursor", "--remove", "--replace", "server-memory")[2]


@pytest.mark.parametrize("options", [(), ("--remove",)], ids=["write", "remove"])
def test_a_file_that_cannot_be_edited_does_not_keep_the_other_clients_waiting(
    home: Path, quipu: Quipu, options: tuple[str, ...]
) -> None:
    chosen = [BY_NAME[name] for name in ("cursor", "codex")]
    for client in chosen:
        others(client, home)
    if options:
        quipu("setup", "--all")
    broken = file(BY_NAME["claude-desktop"], home)
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    status, _, error = quipu("setup", "--all", *options)
    assert (status, broken.read_text()) == (1, "{")
    assert any(line.startswith("Claude Desktop: ") for line in error.splitlines())
    found = [find_entry(client, file(client, home), "quipu") is None for client in chosen]
    assert found == [bool(options)] * 2


def test_key_from_standard_input_goes_to_every_client(
    home: Path, quipu: Quipu, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [BY_NAME[name] for name in ("cursor", "codex")]
    for client in chosen:
        others(client, home)
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    assert quipu("setup", "--all", "--key", "-")[0] == 0
    assert ["Bearer secret" in file(client, home).read_text() for client in chosen] == [True, True]

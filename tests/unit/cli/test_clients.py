"""Configuration files and entry formats of the clients, as their documentation specifies them."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from kernel.cli.clients import BY_NAME, CLIENTS, Target, config_file, entry_of, install_link_of

HTTP = Target(url="http://h/mcp", key="k")
STDIO = Target(command=("/bin/quipu", "stdio"), env={"A": "1"})
BEARER = {"Authorization": "Bearer k"}
PLAIN = {"url": "http://h/mcp", "headers": BEARER}
SERVER_URL = {"serverUrl": "http://h/mcp", "headers": BEARER}
COMMAND = {"command": "/bin/quipu", "args": ["stdio"], "env": {"A": "1"}}
FORMATS: dict[str, tuple[Any, Any]] = {
    "claude-code": ({"type": "http", **PLAIN}, {"type": "stdio", **COMMAND}),
    "claude-desktop": (None, COMMAND),
    "cursor": (PLAIN, COMMAND),
    "vscode": ({"type": "http", **PLAIN}, {"type": "stdio", **COMMAND}),
    "codex": ({"url": "http://h/mcp", "http_headers": BEARER}, COMMAND),
    "windsurf": (SERVER_URL, COMMAND),
    "zed": (PLAIN, COMMAND),
    "gemini-cli": ({"httpUrl": "http://h/mcp", "headers": BEARER}, COMMAND),
    "antigravity": (SERVER_URL, COMMAND),
    "copilot-cli": ({"type": "http", **PLAIN, "tools": ["*"]}, {"type": "local", **COMMAND, "tools": ["*"]}),
    "opencode": (
        {"type": "remote", **PLAIN},
        {"type": "local", "command": ["/bin/quipu", "stdio"], "environment": {"A": "1"}},
    ),
    "kiro": (PLAIN, COMMAND),
    "lm-studio": (PLAIN, COMMAND),
}
KEYS = {"vscode": ("servers",), "codex": ("mcp_servers",), "zed": ("context_servers",), "opencode": ("mcp",)}
FILES = {
    "claude-code": ("~/.claude.json", "~/.claude.json", "~/.claude.json"),
    "claude-desktop": (
        "~/.config/Claude/claude_desktop_config.json",
        "~/Library/Application Support/Claude/claude_desktop_config.json",
        "~/AppData/Roaming/Claude/claude_desktop_config.json",
    ),
    "cursor": ("~/.cursor/mcp.json", "~/.cursor/mcp.json", "~/.cursor/mcp.json"),
    "vscode": (
        "~/.config/Code/User/mcp.json",
        "~/Library/Application Support/Code/User/mcp.json",
        "~/AppData/Roaming/Code/User/mcp.json",
    ),
    "codex": ("~/.codex/config.toml",) * 3,
    "windsurf": ("~/.codeium/windsurf/mcp_config.json",) * 3,
    "zed": ("~/.config/zed/settings.json", "~/.config/zed/settings.json", "~/AppData/Roaming/zed/settings.json"),
    "gemini-cli": ("~/.gemini/settings.json",) * 3,
    "antigravity": ("~/.gemini/config/mcp_config.json",) * 3,
    "copilot-cli": ("~/.copilot/mcp-config.json",) * 3,
    "opencode": ("~/.config/opencode/opencode.json",) * 3,
    "kiro": ("~/.kiro/settings/mcp.json",) * 3,
    "lm-studio": ("~/.lmstudio/mcp.json",) * 3,
}


def test_entries_have_the_documented_format() -> None:
    assert {client.name: (entry_of(client, HTTP), entry_of(client, STDIO)) for client in CLIENTS} == FORMATS
    assert {client.name: client.keys for client in CLIENTS} == {
        name: KEYS.get(name, ("mcpServers",)) for name in FORMATS
    }


def test_entry_without_key_or_variables_omits_the_fields() -> None:
    assert entry_of(BY_NAME["cursor"], Target(url="u")) == {"url": "u"}
    assert entry_of(BY_NAME["codex"], Target(command=("q",))) == {"command": "q", "args": []}


@pytest.mark.parametrize(("column", "platform"), [(0, "linux"), (1, "darwin"), (2, "win32")])
def test_config_file_of_every_platform(column: int, platform: str) -> None:
    values = {"USERPROFILE" if platform == "win32" else "HOME": "/u"}
    found = {client.name: config_file(client, values, platform) for client in CLIENTS}
    assert found == {name: Path(files[column].replace("~", "/u")) for name, files in FILES.items()}


@pytest.mark.parametrize(
    ("client", "variable", "platform", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "linux", "/moved/.claude.json"),
        ("codex", "CODEX_HOME", "darwin", "/moved/config.toml"),
        ("copilot-cli", "COPILOT_HOME", "linux", "/moved/mcp-config.json"),
        ("zed", "XDG_CONFIG_HOME", "linux", "/moved/zed/settings.json"),
        ("vscode", "APPDATA", "win32", "/moved/Code/User/mcp.json"),
    ],
)
def test_environment_variable_overrides_the_directory(client: str, variable: str, platform: str, file: str) -> None:
    assert config_file(BY_NAME[client], {"HOME": "/u", variable: "/moved"}, platform) == Path(file)


def test_install_link_contains_the_entry() -> None:
    entry = {"url": "http://127.0.0.1:7847/mcp?a=b+c"}
    for name in ("cursor", "lm-studio"):
        query = parse_qs(urlsplit(install_link_of(BY_NAME[name], "q", entry)).query, strict_parsing=True)
        assert query.pop("name") == ["q"]
        assert json.loads(base64.b64decode(query.pop("config")[0], validate=True)) == entry
        assert query == {}
    link = install_link_of(BY_NAME["vscode"], "q", entry)
    assert link.startswith("vscode:mcp/install?%7B")
    assert json.loads(unquote(link.partition("?")[2])) == {"name": "q", **entry}
    assert install_link_of(BY_NAME["codex"], "q", entry) == ""

"""The MCP clients that `quipu setup` supports: the configuration file of each and the form of a server entry."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

Base = Literal["home", "apps", "dotfiles"]
Syntax = Literal["json", "jsonc", "toml"]  # jsonc: JSON with comments and trailing commas
Entry = dict[str, Any]


class ConfigPath(NamedTuple):
    """A file below one of the user's directories; the environment variable `moved` overrides the directory of the file.

    `home` is the home directory, `apps` the platform's directory for application data, `dotfiles` the same except on
    macOS, if some programs use `.config` as on Linux.
    """

    base: Base
    path: str
    moved: str = ""


class Target(NamedTuple):
    """The server of an entry: a `url` with an optional `key`, or a `command` that the client starts."""

    url: str = ""
    key: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Client(NamedTuple):
    """One client: `http` and `stdio` are entry templates, None if it does not support that transport.

    Entries are stored by name at `keys` of the file, or at the first of `alternative_keys` that the file has.
    `install_link` is a link template that makes the client offer to add an entry.
    """

    name: str
    title: str
    config_path: ConfigPath
    keys: tuple[str, ...]
    http: Mapping[str, Any] | None
    stdio: Mapping[str, Any]
    alternative_keys: tuple[tuple[str, ...], ...] = ()
    syntax: Syntax = "jsonc"
    install_link: str = ""


_SERVERS = ("mcpServers",)
_STDIO = {"command": "{command}", "args": "{args}", "env": "{env}"}
_HTTP = {"url": "{url}", "headers": "{headers}"}

CLIENTS = (
    Client(
        "claude-code",
        "Claude Code",
        ConfigPath("home", ".claude.json", "CLAUDE_CONFIG_DIR"),
        _SERVERS,
        {"type": "http", **_HTTP},
        {"type": "stdio", **_STDIO},
    ),
    Client(
        "claude-desktop",
        "Claude Desktop",
        ConfigPath("apps", "Claude/claude_desktop_config.json"),
        _SERVERS,
        None,
        _STDIO,
        syntax="json",
    ),
    Client(
        "cursor",
        "Cursor",
        ConfigPath("home", ".cursor/mcp.json"),
        _SERVERS,
        _HTTP,
        _STDIO,
        install_link="cursor://anysphere.cursor-deeplink/mcp/install?name={name}&config={base64}",
    ),
    Client(
        "vscode",
        "VS Code",
        ConfigPath("apps", "Code/User/mcp.json"),
        ("servers",),
        {"type": "http", **_HTTP},
        {"type": "stdio", **_STDIO},
        install_link="vscode:mcp/install?{json}",
    ),
    Client(
        "codex",
        "Codex",
        ConfigPath("home", ".codex/config.toml", "CODEX_HOME"),
        ("mcp_servers",),
        {"url": "{url}", "http_headers": "{headers}"},
        _STDIO,
        syntax="toml",
    ),
    Client(
        "windsurf",
        "Windsurf",
        ConfigPath("home", ".codeium/windsurf/mcp_config.json"),
        _SERVERS,
        {"serverUrl": "{url}", "headers": "{headers}"},
        _STDIO,
    ),
    Client("zed", "Zed", ConfigPath("dotfiles", "zed/settings.json"), ("context_servers",), _HTTP, _STDIO),
    Client(
        "gemini-cli",
        "Gemini CLI",
        ConfigPath("home", ".gemini/settings.json"),
        _SERVERS,
        {"httpUrl": "{url}", "headers": "{headers}"},
        _STDIO,
    ),
    Client(
        "antigravity",
        "Antigravity",
        ConfigPath("home", ".gemini/config/mcp_config.json"),
        _SERVERS,
        {"serverUrl": "{url}", "headers": "{headers}"},
        _STDIO,
    ),
    Client(
        "copilot-cli",
        "Copilot CLI",
        ConfigPath("home", ".copilot/mcp-config.json", "COPILOT_HOME"),
        _SERVERS,
        {"type": "http", **_HTTP, "tools": ["*"]},
        {"type": "local", **_STDIO, "tools": ["*"]},
    ),
    Client(
        "opencode",
        "opencode",
        ConfigPath("home", ".config/opencode/opencode.json"),
        ("mcp",),
        {"type": "remote", **_HTTP},
        {"type": "local", "command": "{argv}", "environment": "{env}"},
        alternative_keys=(("mcp", "servers"),),
    ),
    Client("kiro", "Kiro", ConfigPath("home", ".kiro/settings/mcp.json"), _SERVERS, _HTTP, _STDIO),
    Client(
        "lm-studio",
        "LM Studio",
        ConfigPath("home", ".lmstudio/mcp.json"),
        _SERVERS,
        _HTTP,
        _STDIO,
        install_link="lmstudio://add_mcp?name={name}&config={base64}",
    ),
)
BY_NAME = {client.name: client for client in CLIENTS}


def config_file(client: Client, values: Mapping[str, str], platform: str) -> Path:
    base, path, moved = client.config_path
    if moved and values.get(moved):
        return Path(values[moved]) / Path(path).name
    home = Path(values.get("HOME") or values.get("USERPROFILE") or ".")
    if base == "home":
        return home / path
    if platform == "win32":
        return Path(values.get("APPDATA") or home / "AppData" / "Roaming") / path
    if platform == "darwin" and base == "apps":
        return home / "Library" / "Application Support" / path
    return Path(values.get("XDG_CONFIG_HOME") or home / ".config") / path


def entry_of(client: Client, target: Target) -> Entry | None:
    """Return the entry for `target`; None if the client does not support that kind of target."""
    shape = client.http if target.url else client.stdio
    if shape is None:
        return None
    filling = {
        "{url}": target.url,
        "{headers}": {"Authorization": f"Bearer {target.key}"} if target.key else None,
        "{command}": target.command[0] if target.command else "",
        "{args}": list(target.command[1:]),
        "{argv}": list(target.command),
        "{env}": dict(target.env) or None,
    }
    filled = {key: filling.get(value, value) if isinstance(value, str) else value for key, value in shape.items()}
    return {key: value for key, value in filled.items() if value is not None}


def install_link_of(client: Client, name: str, entry: Entry) -> str:
    """Return the link that installs an entry; empty if the client has no such links."""
    whole = json.dumps({"name": name, **entry}, separators=(",", ":"), ensure_ascii=False)
    alone = json.dumps(entry, separators=(",", ":"), ensure_ascii=False)
    packed = base64.b64encode(alone.encode()).decode()
    return (
        client.install_link.replace("{name}", quote(name, safe=""))
        .replace("{base64}", quote(packed, safe=""))
        .replace("{json}", quote(whole, safe=""))
    )

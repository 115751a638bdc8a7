"""The MCP clients that `quipu setup` knows: where each keeps its configuration, and how an entry in it looks."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

Base = Literal["home", "apps", "dotfiles"]
Entry = dict[str, Any]


class Place(NamedTuple):
    """A file below one of a user's folders; the variable `moved`, where it is set, names the folder of the file.

    `home` is the home directory, `apps` where the platform keeps the files of programs, `dotfiles` the same but for
    macOS, where some programs use `.config` as on Linux.
    """

    base: Base
    path: str
    moved: str = ""


class Target(NamedTuple):
    """What an entry points to: a `url` with an optional `key`, or a `command` to start."""

    url: str = ""
    key: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Client(NamedTuple):
    """One client: `http` and `stdio` are its entries with fields to fill in, None where it has no such thing.

    An entry stands under its name at `keys` of the file, or at the first of `elsewhere` that the file has. `link` is an
    address that makes the client ask its user to add an entry.
    """

    name: str
    title: str
    place: Place
    keys: tuple[str, ...]
    http: Mapping[str, Any] | None
    stdio: Mapping[str, Any]
    elsewhere: tuple[tuple[str, ...], ...] = ()
    toml: bool = False
    link: str = ""


_SERVERS = ("mcpServers",)
_STDIO = {"command": "{command}", "args": "{args}", "env": "{env}"}
_HTTP = {"url": "{url}", "headers": "{headers}"}

CLIENTS = (
    Client(
        "claude-code",
        "Claude Code",
        Place("home", ".claude.json", "CLAUDE_CONFIG_DIR"),
        _SERVERS,
        {"type": "http", **_HTTP},
        {"type": "stdio", **_STDIO},
    ),
    Client(
        "claude-desktop",
        "Claude Desktop",
        Place("apps", "Claude/claude_desktop_config.json"),
        _SERVERS,
        None,
        _STDIO,
    ),
    Client(
        "cursor",
        "Cursor",
        Place("home", ".cursor/mcp.json"),
        _SERVERS,
        _HTTP,
        _STDIO,
        link="cursor://anysphere.cursor-deeplink/mcp/install?name={name}&config={base64}",
    ),
    Client(
        "vscode",
        "VS Code",
        Place("apps", "Code/User/mcp.json"),
        ("servers",),
        {"type": "http", **_HTTP},
        {"type": "stdio", **_STDIO},
        link="vscode:mcp/install?{json}",
    ),
    Client(
        "codex",
        "Codex",
        Place("home", ".codex/config.toml", "CODEX_HOME"),
        ("mcp_servers",),
        {"url": "{url}", "http_headers": "{headers}"},
        _STDIO,
        toml=True,
    ),
    Client(
        "windsurf",
        "Windsurf",
        Place("home", ".codeium/windsurf/mcp_config.json"),
        _SERVERS,
        {"serverUrl": "{url}", "headers": "{headers}"},
        _STDIO,
    ),
    Client("zed", "Zed", Place("dotfiles", "zed/settings.json"), ("context_servers",), _HTTP, _STDIO),
    Client(
        "gemini-cli",
        "Gemini CLI",
        Place("home", ".gemini/settings.json"),
        _SERVERS,
        {"httpUrl": "{url}", "headers": "{headers}"},
        _STDIO,
    ),
    Client(
        "antigravity",
        "Antigravity",
        Place("home", ".gemini/config/mcp_config.json"),
        _SERVERS,
        {"serverUrl": "{url}", "headers": "{headers}"},
        _STDIO,
    ),
    Client(
        "copilot-cli",
        "Copilot CLI",
        Place("home", ".copilot/mcp-config.json", "COPILOT_HOME"),
        _SERVERS,
        {"type": "http", **_HTTP, "tools": ["*"]},
        {"type": "local", **_STDIO, "tools": ["*"]},
    ),
    Client(
        "opencode",
        "opencode",
        Place("home", ".config/opencode/opencode.json"),
        ("mcp",),
        {"type": "remote", **_HTTP},
        {"type": "local", "command": "{argv}", "environment": "{env}"},
        elsewhere=(("mcp", "servers"),),
    ),
    Client("kiro", "Kiro", Place("home", ".kiro/settings/mcp.json"), _SERVERS, _HTTP, _STDIO),
    Client(
        "lm-studio",
        "LM Studio",
        Place("home", ".lmstudio/mcp.json"),
        _SERVERS,
        _HTTP,
        _STDIO,
        link="lmstudio://add_mcp?name={name}&config={base64}",
    ),
)
BY_NAME = {client.name: client for client in CLIENTS}


def file_of(client: Client, values: Mapping[str, str], platform: str) -> Path:
    """Where this user's client keeps its configuration on this platform."""
    base, path, moved = client.place
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
    """The entry that points to `target`; None where the client cannot be pointed there."""
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


def link_of(client: Client, name: str, entry: Entry) -> str:
    """The address that adds an entry, empty where the client knows none."""
    whole = json.dumps({"name": name, **entry}, separators=(",", ":"), ensure_ascii=False)
    alone = json.dumps(entry, separators=(",", ":"), ensure_ascii=False)
    packed = base64.b64encode(alone.encode()).decode()
    return (
        client.link.replace("{name}", quote(name, safe=""))
        .replace("{base64}", quote(packed, safe=""))
        .replace("{json}", quote(whole, safe=""))
    )

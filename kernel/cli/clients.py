"""The MCP clients that `quipu setup` supports: the configuration file of each and the form of a server entry."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from kernel.core.config import user_folder

Base = Literal["home", "apps", "dotfiles"]
Syntax = Literal["json", "jsonc", "toml"]  # jsonc: JSON with comments and trailing commas
Entry = dict[str, Any]


class ConfigPath(NamedTuple):
    """A path below one of the user's directories; the environment variable `moved` overrides the folder of the file.

    `home` is the home directory, `apps` the platform's directory for application data, `dotfiles` the same except on
    macOS, if some programs use `.config` as on Linux.
    """

    path: str
    moved: str = ""
    base: Base = "home"


class Target(NamedTuple):
    """The server of an entry: a `url` with an optional `key`, or a `command` that the client starts."""

    url: str = ""
    key: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


_STDIO = {"command": "{command}", "args": "{args}", "env": "{env}"}
_HTTP = {"url": "{url}", "headers": "{headers}"}
_TYPED_HTTP, _TYPED_STDIO = {"type": "http", **_HTTP}, {"type": "stdio", **_STDIO}
_SERVER_URL = {"serverUrl": "{url}", "headers": "{headers}"}
_HTTP_URL = {"httpUrl": "{url}", "headers": "{headers}"}


class Client(NamedTuple):
    """One client: `http` and `stdio` are entry templates, None if it does not support that transport.

    Entries are stored by name at `keys` of the file, or at the first of `alternative_keys` that the file has.
    `install_link` is a link template that makes the client offer to add an entry.
    """

    name: str
    title: str
    config_path: ConfigPath
    http: Mapping[str, Any] | None = _HTTP
    stdio: Mapping[str, Any] = _STDIO
    keys: tuple[str, ...] = ("mcpServers",)
    alternative_keys: tuple[tuple[str, ...], ...] = ()
    syntax: Syntax = "jsonc"
    install_link: str = ""


CLIENTS = (
    Client("claude-code", "Claude Code", ConfigPath(".claude.json", "CLAUDE_CONFIG_DIR"), _TYPED_HTTP, _TYPED_STDIO),
    Client(
        "claude-desktop",
        "Claude Desktop",
        ConfigPath("Claude/claude_desktop_config.json", base="apps"),
        http=None,
        syntax="json",
    ),
    Client(
        "cursor",
        "Cursor",
        ConfigPath(".cursor/mcp.json"),
        install_link="cursor://anysphere.cursor-deeplink/mcp/install?name={name}&config={base64}",
    ),
    Client(
        "vscode",
        "VS Code",
        ConfigPath("Code/User/mcp.json", base="apps"),
        _TYPED_HTTP,
        _TYPED_STDIO,
        ("servers",),
        install_link="vscode:mcp/install?{json}",
    ),
    Client(
        "codex",
        "Codex",
        ConfigPath(".codex/config.toml", "CODEX_HOME"),
        {"url": "{url}", "http_headers": "{headers}"},
        keys=("mcp_servers",),
        syntax="toml",
    ),
    Client("windsurf", "Windsurf", ConfigPath(".codeium/windsurf/mcp_config.json"), _SERVER_URL),
    Client("zed", "Zed", ConfigPath("zed/settings.json", base="dotfiles"), keys=("context_servers",)),
    Client("gemini-cli", "Gemini CLI", ConfigPath(".gemini/settings.json"), _HTTP_URL),
    Client("antigravity", "Antigravity", ConfigPath(".gemini/config/mcp_config.json"), _SERVER_URL),
    Client(
        "copilot-cli",
        "Copilot CLI",
        ConfigPath(".copilot/mcp-config.json", "COPILOT_HOME"),
        {**_TYPED_HTTP, "tools": ["*"]},
        {"type": "local", **_STDIO, "tools": ["*"]},
    ),
    Client(
        "opencode",
        "opencode",
        ConfigPath(".config/opencode/opencode.json"),
        {"type": "remote", **_HTTP},
        {"type": "local", "command": "{argv}", "environment": "{env}"},
        ("mcp",),
        (("mcp", "servers"),),
    ),
    Client("kiro", "Kiro", ConfigPath(".kiro/settings/mcp.json")),
    Client(
        "lm-studio",
        "LM Studio",
        ConfigPath(".lmstudio/mcp.json"),
        install_link="lmstudio://add_mcp?name={name}&config={base64}",
    ),
)
BY_NAME = {client.name: client for client in CLIENTS}


def config_file(client: Client, values: Mapping[str, str], platform: str) -> Path:
    return locate(client.config_path, values, platform)


def locate(config_path: ConfigPath, values: Mapping[str, str], platform: str) -> Path:
    path, variable, base = config_path
    if variable and values.get(variable):
        return Path(values[variable]) / Path(path).name
    home = user_folder(values)
    if base == "home":
        return home / path
    if platform == "win32":
        return Path(values.get("APPDATA") or home / "AppData" / "Roaming") / path
    if platform == "darwin" and base == "apps":
        return home / "Library" / "Application Support" / path
    return Path(values.get("XDG_CONFIG_HOME") or home / ".config") / path


def entry_of(client: Client, target: Target) -> Entry | None:
    shape = client.http if target.url else client.stdio
    if shape is None:
        return None
    values = {
        "{url}": target.url,
        "{headers}": {"Authorization": f"Bearer {target.key}"} if target.key else None,
        "{command}": target.command[0] if target.command else "",
        "{args}": list(target.command[1:]),
        "{argv}": list(target.command),
        "{env}": dict(target.env) or None,
    }
    entry = {key: values.get(value, value) if isinstance(value, str) else value for key, value in shape.items()}
    return {key: value for key, value in entry.items() if value is not None}


def install_link_of(client: Client, name: str, entry: Entry) -> str:
    with_name = json.dumps({"name": name, **entry}, separators=(",", ":"), ensure_ascii=False)
    alone = json.dumps(entry, separators=(",", ":"), ensure_ascii=False)
    base64_text = base64.b64encode(alone.encode()).decode()
    return (
        client.install_link.replace("{name}", quote(name, safe=""))
        .replace("{base64}", quote(base64_text, safe=""))
        .replace("{json}", quote(with_name, safe=""))
    )

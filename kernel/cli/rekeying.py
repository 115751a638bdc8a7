"""The clients of this machine that the first key locks out, and the command that gives each of them a key."""

import shlex
import sys

from kernel.cli import client_entries, hook_files
from kernel.cli.clients import CLIENTS, Client, config_file
from kernel.cli.hook_entries import HOOK_CLIENTS
from kernel.core.config import Config
from kernel.core.errors import Fault


def rekey_commands(config: Config, platform: str = sys.platform) -> list[tuple[str, str]]:
    """Return title and command of each client with an entry for the server of a configuration."""
    found = [(client.title, rekey_command(client, config, platform)) for client in CLIENTS]
    return [(title, command) for title, command in found if command]


def rekey_command(client: Client, config: Config, platform: str = sys.platform) -> str:
    """Return the command that keeps address and hooks of an entry and adds a key; empty if there is no such entry."""
    try:
        entry = client_entries.find_entry(
            client, config_file(client, config.environment, platform), client_entries.NAME
        )
    except Fault:
        return ""
    url = client_entries.url_of(entry or {})
    if not (client_entries.is_local(url, config.port) or (config.public and url.startswith(f"{config.public}/"))):
        return ""
    words = ["quipu", "setup", "--client", client.name, "--url", url, *_hooks(client, config, platform), "--key", "-"]
    return shlex.join(words)


def _hooks(client: Client, config: Config, platform: str) -> list[str]:
    for hooks in HOOK_CLIENTS:
        if hooks.name == client.name:
            events = hook_files.installed(hooks, hook_files.file_of(hooks, config.environment, platform))
            level = "recall" if {*hooks.recall.values()} & {*events} else "prime"
            return ["--hooks", level] if events else []
    return []

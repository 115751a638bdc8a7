"""`quipu setup`: configure an MCP client for this server."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kernel import app
from kernel.cli import client_entries
from kernel.cli.clients import BY_NAME, CLIENTS, Client, Entry, Target, config_file, entry_of, install_link_of
from kernel.cli.output import note, show
from kernel.config import Config, on_loopback
from kernel.errors import Fault
from kernel.security import api_keys


def run(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> int:
    """Write or print the entry for a client, or list the supported clients; return the exit status."""
    if not arguments.client:
        for client in CLIENTS:
            found = describe(client, config.environment, platform, arguments.name)
            row = {"client": client.name, "title": client.title, "found": found}
            show(row, f"{client.name:15} {client.title:15} {found}", as_json=arguments.json)
        return 0
    if arguments.client not in BY_NAME:
        raise Fault("invalid", f"{arguments.client} is not a supported client: {', '.join(BY_NAME)}")
    client = BY_NAME[arguments.client]
    entry = _entry(client, arguments, config, platform)
    file = config_file(client, config.environment, platform)
    if arguments.link:
        link = install_link_of(client, arguments.name, entry)
        if not link:
            raise Fault("invalid", f"{client.title} has no install links: leave --link out")
        show({"link": link}, link, as_json=arguments.json)
    elif arguments.shown:
        snippet = client_entries.snippet(client, arguments.name, entry)
        show({"file": str(file), "snippet": snippet}, snippet.removesuffix("\n"), as_json=arguments.json)
        note(f"goes into {file}")
    else:
        _write(client, file, arguments.name, entry, as_json=arguments.json)
    return 0


def describe(client: Client, values: Mapping[str, str], platform: str, name: str) -> str:
    """One line: the configuration file of a client and the target of its entry."""
    file = config_file(client, values, platform)
    if not file.is_file():
        return f"no configuration at {file}"
    try:
        entry = client_entries.find_entry(client, file, name)
    except Fault as fault:
        return f"{file} cannot be read: {fault.message}"
    return f"{file} has no {name}" if entry is None else f"{file}: {client_entries.describe_target(entry)}"


def _entry(client: Client, arguments: argparse.Namespace, config: Config, platform: str) -> Entry:
    target = _target(client, arguments, config, platform)
    entry = entry_of(client, target)
    if entry is None:
        raise Fault(
            "invalid", f"{client.title} supports only servers that it starts: use --stdio without --url and --key"
        )
    parts = urlsplit(target.url)
    if target.key and parts.scheme == "http" and not on_loopback(parts.hostname or ""):
        note("the key would be sent unencrypted: terminate TLS in front of the server and use an https URL")
    if target.url and not (target.key or arguments.url) and api_keys.read(config.data):
        note("the server requires a key: create one with `quipu key create` and pass it with --key")
    return entry


def _target(client: Client, arguments: argparse.Namespace, config: Config, platform: str) -> Target:
    dialects = (
        tuple(dialect.name for dialect in app.select_dialects(tuple(arguments.dialect))) if arguments.dialect else ()
    )
    remote = bool(arguments.url or arguments.key)
    if arguments.stdio and remote:
        raise Fault("invalid", "--url and --key are for a running server, --stdio for one that the client starts")
    if arguments.stdio or (client.http is None and not remote):
        started = client_entries.launch_command(
            sys.argv[0], sys.executable, config.environment, frozen=hasattr(sys, "frozen")
        )
        return client_entries.stdio_target(config, started, platform, dialects)
    if arguments.data or arguments.model or arguments.tenant:
        raise Fault("invalid", "--data, --model and --tenant need --stdio: a running server has its own")
    url = arguments.url or f"{config.public or f'http://127.0.0.1:{config.port}'}/mcp"
    key = sys.stdin.readline().strip() if arguments.key == "-" else arguments.key
    return client_entries.http_target(url, key, dialects)


def _write(client: Client, file: Path, name: str, entry: Entry, *, as_json: bool) -> None:
    done = client_entries.apply_entry(client, file, name, entry)
    backup = f"; the previous content is in {done.backup.name}" if done.backup else ""
    told = f"{client.title}: {name} is in {file}{backup}\nRestart {client.title} to use it."
    row = {"file": str(file), "changed": done.changed, "backup": str(done.backup) if done.backup else None}
    show(row, told if done.changed else f"{client.title}: {file} is up to date", as_json=as_json)

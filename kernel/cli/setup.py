"""The command that points MCP clients at this server."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kernel import app
from kernel.cli import client_entries
from kernel.cli.clients import BY_NAME, CLIENTS, Client, Entry, Target, entry_of, file_of, link_of
from kernel.config import Config, on_loopback
from kernel.errors import Fault
from kernel.security import api_keys


def run(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> int:
    """Writes or prints the configuration that was asked for; 0 if all went well."""
    if not arguments.client:
        for client in CLIENTS:
            print(f"{client.name:15} {client.title:15} {state(client, config.environment, platform, arguments.name)}")
        return 0
    if arguments.client not in BY_NAME:
        raise Fault("invalid", f"{arguments.client} is not among the known clients: {', '.join(BY_NAME)}")
    client = BY_NAME[arguments.client]
    entry = _entry(client, arguments, config, platform)
    file = file_of(client, config.environment, platform)
    if arguments.link:
        link = link_of(client, arguments.name, entry)
        if not link:
            raise Fault("invalid", f"{client.title} has no such addresses; leave --link out")
        print(link)
    elif arguments.shown:
        print(client_entries.snippet(client, arguments.name, entry), end="")
        print(f"goes into {file}", file=sys.stderr)
    else:
        _write(client, file, arguments.name, entry)
    return 0


def state(client: Client, values: Mapping[str, str], platform: str, name: str) -> str:
    """Where a client keeps its configuration and what its entry points to, in words."""
    file = file_of(client, values, platform)
    if not file.is_file():
        return f"no configuration at {file}"
    try:
        entry = client_entries.find(client, file, name)
    except Fault as fault:
        return f"{file} cannot be read: {fault.message}"
    return f"{file} has no {name}" if entry is None else f"{file}: {client_entries.points_to(entry)}"


def _entry(client: Client, arguments: argparse.Namespace, config: Config, platform: str) -> Entry:
    target = _target(client, arguments, config, platform)
    entry = entry_of(client, target)
    if entry is None:
        raise Fault("invalid", f"{client.title} starts its servers itself: use --stdio, without --url and --key")
    parts = urlsplit(target.url)
    if target.key and parts.scheme == "http" and not on_loopback(parts.hostname or ""):
        print(
            "the key will cross the network in the clear: put TLS in front, and give an https address", file=sys.stderr
        )
    if target.url and not (target.key or arguments.url) and api_keys.read(config.data):
        print("the server asks for a key: make one with `quipu key create`, and give it with --key", file=sys.stderr)
    return entry


def _target(client: Client, arguments: argparse.Namespace, config: Config, platform: str) -> Target:
    dialects = (
        tuple(dialect.name for dialect in app.select_dialects(tuple(arguments.dialect))) if arguments.dialect else ()
    )
    away = bool(arguments.url or arguments.key)
    if arguments.stdio and away:
        raise Fault("invalid", "--url and --key are for a server that runs; one that the client starts has neither")
    if arguments.stdio or (client.http is None and not away):
        started = client_entries.program(sys.argv[0], sys.executable, config.environment, frozen=hasattr(sys, "frozen"))
        return client_entries.over_stdio(config, started, platform, dialects)
    if arguments.data or arguments.model or arguments.tenant:
        raise Fault("invalid", "--data, --model and --tenant are for --stdio: a server that runs has its own")
    url = arguments.url or f"{config.public or f'http://127.0.0.1:{config.port}'}/mcp"
    key = sys.stdin.readline().strip() if arguments.key == "-" else arguments.key
    return client_entries.over_http(url, key, dialects)


def _write(client: Client, file: Path, name: str, entry: Entry) -> None:
    done = client_entries.apply(client, file, name, entry)
    if not done.changed:
        print(f"{client.title}: {file} says so already")
        return
    kept = f"; what was there is in {done.backup.name}" if done.backup else ""
    print(f"{client.title}: {name} is in {file}{kept}")
    print(f"Start {client.title} again to use it.")

"""`quipu setup`: configure MCP clients for this server, or remove it from them."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from kernel.cli import client_entries, hook_files, probe
from kernel.cli.client_entries import ApplyResult
from kernel.cli.clients import BY_NAME, CLIENTS, Client, Entry, Target, config_file, entry_of, install_link_of
from kernel.cli.hook_files import HOOK_CLIENTS
from kernel.cli.output import note, show
from kernel.core.config import FIRST_DIALECTS, Config, on_loopback
from kernel.core.errors import Fault
from kernel.core.text import did_you_mean
from kernel.security import api_keys
from kernel.server import app

# For a user without habits of another server: memories by path, and the search over all of them.
_EVERY_DIALECT = "all"
# Names in the commands of a server that can be replaced: its package, its program, its image.
_PROGRAMS = {"server-memory": ("server-memory", "mcp-server-memory", "mcp/memory")}
_UNAUTHORIZED = 401
_WITH_HOOKS = {client.name for client in HOOK_CLIENTS}


def run(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> int:
    """Write, print or remove the entry of clients, or list the supported clients; return the exit status."""
    _check(arguments)
    clients: list[Client] = []
    if arguments.client:
        if arguments.client not in BY_NAME:
            matches = [name for name in BY_NAME if name.startswith(arguments.client)]
            every = f": {', '.join(BY_NAME)}"
            hint = f": did you mean {' or '.join(matches)}?" if matches else did_you_mean(arguments.client, BY_NAME)
            raise Fault("invalid", f"{arguments.client} is not a supported client{hint or every}")
        clients = [BY_NAME[arguments.client]]
    elif arguments.all:
        clients = [client for client in CLIENTS if config_file(client, config.environment, platform).is_file()]
        if not clients:
            raise Fault("not_found", "no supported client has a configuration on this machine: name one with --client")
    else:
        if arguments.remove:
            raise Fault("invalid", "--remove needs --client NAME or --all")
        for client in CLIENTS:
            state = describe(client, config.environment, platform, arguments.name)
            row = {"client": client.name, "title": client.title, "found": state}
            show(row, f"{client.name:15} {client.title:15} {state}", as_json=arguments.json)
        return 0
    if arguments.key == "-" and not arguments.remove:
        arguments.key = client_entries.typed_key("-")  # once, for every client
    return _change_each(clients, arguments, config, platform)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.all and arguments.client:
        raise Fault("invalid", "--all is for every client of this machine: leave --client out")
    if arguments.replace and arguments.remove:
        raise Fault("invalid", "--replace writes an entry and --remove takes one out: leave one of them out")
    if arguments.hooks and (arguments.remove or arguments.link):
        raise Fault("invalid", "--hooks goes with neither --remove, which removes them, nor --link: leave one out")
    if arguments.hooks and arguments.client:
        hook_files.of_client(arguments.client)


def describe(client: Client, values: Mapping[str, str], platform: str, name: str) -> str:
    """Return one line: the configuration file of a client and the target of its entry."""
    file = config_file(client, values, platform)
    if not file.is_file():
        return f"no configuration at {file}"
    try:
        entry = client_entries.find_entry(client, file, name)
    except Fault as fault:
        return f"{file} cannot be read: {fault.message}"
    return f"{file} has no {name}" if entry is None else f"{file}: {client_entries.describe_target(entry)}"


def _change_each(clients: Sequence[Client], arguments: argparse.Namespace, config: Config, platform: str) -> int:
    """Change every client whose file can be edited; return the exit status."""
    faults: list[tuple[Client, Fault]] = []
    for client in clients:
        try:
            _change(client, arguments, config, platform)
        except Fault as fault:
            faults.append((client, fault))
    if len(faults) == len(clients):
        raise faults[0][1]
    for client, fault in faults:
        note(f"{client.title}: {fault.message}")
    return 1 if faults else 0


def _change(client: Client, arguments: argparse.Namespace, config: Config, platform: str) -> None:
    file, name = config_file(client, config.environment, platform), arguments.name
    if arguments.remove:
        result = client_entries.remove_entry(client, file, name)
        line = f"{name} is removed from {file}{_backup(result)}\nRestart {client.title} to end its use."
        _report(client, file, result, line if result.changed else f"{file} has no {name}", as_json=arguments.json)
        hook_files.remove_of(client.name, arguments, config, platform)
        return
    if arguments.replace:
        name = client_entries.name_of_entry_starting(client, file, _PROGRAMS[arguments.replace])
        if name is None:
            raise Fault("not_found", f"{file} starts no {arguments.replace}: nothing to replace")
        arguments = argparse.Namespace(**{**vars(arguments), "name": name})
    entry = _kept_entry(client, file, arguments)
    if entry is not None:
        arguments = argparse.Namespace(**{**vars(arguments), "url": client_entries.url_of(entry)})
    key = arguments.key or _kept_key(client, file, arguments, config)
    arguments = argparse.Namespace(**{**vars(arguments), "key": key})
    if entry is None:
        _set_up(client, file, arguments, config, platform)
    else:
        line = f"{name} stays as it is in {file}: {client_entries.describe_target(entry)}"
        _report(client, file, ApplyResult(changed=False), line, as_json=arguments.json)
        if arguments.url and (key or not client_entries.bearer_of(entry)):
            _warn_of_address(client_entries.http_target(arguments.url, key, ()), is_key_told=False)
    if arguments.hooks and client.name in _WITH_HOOKS:
        hook_files.apply(client.name, arguments.hooks, arguments, config, platform)


def _kept_entry(client: Client, file: Path, arguments: argparse.Namespace) -> Entry | None:
    """Return the entry that is there, if the options ask for hooks and for no other entry."""
    is_of_entry = arguments.dialect or arguments.url or arguments.key or arguments.stdio or arguments.replace
    if not arguments.hooks or is_of_entry or client.name not in _WITH_HOOKS:
        return None
    return client_entries.find_entry(client, file, arguments.name)


def _kept_key(client: Client, file: Path, arguments: argparse.Namespace, config: Config) -> str:
    """Return the key of an entry that is written again for the same server; no other server is sent it."""
    if client.http is None or arguments.stdio or arguments.shown or arguments.link:
        return ""
    try:
        entry = client_entries.find_entry(client, file, arguments.name) or {}
        key = client_entries.checked_key(client_entries.bearer_of(entry))
    except Fault:  # a file that cannot be changed, or the words of a client for a key that stands elsewhere
        return ""
    if not key:
        return ""
    before = client_entries.url_of(entry)
    if not client_entries.is_same_server(before, _url(arguments, config)):
        server = client_entries.server_of(before)
        note(f"{client.title}: the key for {server} is not sent to another server: pass one with --key")
        return ""
    remove = f"quipu setup --client {client.name} --remove"
    note(f"{client.title}: the entry keeps its key; `{remove}` takes out both")
    return "" if key.startswith("$") else key  # as `${env:KEY}`, which the client alone can read


def _url(arguments: argparse.Namespace, config: Config) -> str:
    return arguments.url or f"{config.public or f'http://127.0.0.1:{config.port}'}/mcp"


def _set_up(client: Client, file: Path, arguments: argparse.Namespace, config: Config, platform: str) -> None:
    name: str = arguments.name
    target = _target(client, arguments, config, platform)
    entry = _entry(client, target, arguments, config)
    if arguments.link:
        link = install_link_of(client, name, entry)
        if not link:
            raise Fault("invalid", f"{client.title} has no install links: leave --link out")
        show({"link": link}, link, as_json=arguments.json)
        return
    if arguments.shown:
        snippet = client_entries.snippet(client, name, entry)
        show({"file": str(file), "snippet": snippet}, snippet.removesuffix("\n"), as_json=arguments.json)
        note(f"goes into {file}")
        return
    result = client_entries.apply_entry(client, file, name, entry)
    line = f"{name} is in {file}{_backup(result)}\nRestart {client.title} to use it."
    _report(client, file, result, line if result.changed else f"{file} is up to date", as_json=arguments.json)
    file_entry = client_entries.find_entry(client, file, name) or {}
    if file_entry.get("disabled") is True or file_entry.get("enabled") is False:
        note(f"{client.title}: {name} is disabled in that file; enable it there or in {client.title}")
    if target.url:
        _warn_of_address(target, is_key_told=_needs_key(target, arguments, config))


def _entry(client: Client, target: Target, arguments: argparse.Namespace, config: Config) -> Entry:
    entry = entry_of(client, target)
    if entry is None:
        raise Fault(
            "invalid",
            f"{client.title} supports only servers that it starts: use --stdio without --url and --key, or add the "
            "address as a connector in its settings",
        )
    parts = urlsplit(target.url)
    if target.key and parts.scheme == "http" and not on_loopback(parts.hostname or ""):
        note("the key would be sent unencrypted: terminate TLS in front of the server and use an https URL")
    if _needs_key(target, arguments, config):
        note("the server requires a key: create one with `quipu key create --scope write` and pass it with --key")
    return entry


def _needs_key(target: Target, arguments: argparse.Namespace, config: Config) -> bool:
    """Return whether an entry for this server lacks the key that its data directory asks for."""
    return bool(target.url and not (target.key or arguments.url) and api_keys.read(config.data))


def _target(client: Client, arguments: argparse.Namespace, config: Config, platform: str) -> Target:
    dialects = _dialects(arguments, config)
    remote = bool(arguments.url or arguments.key)
    if arguments.stdio and remote:
        raise Fault("invalid", "--url and --key are for a running server, --stdio for one that the client starts")
    if arguments.stdio or (client.http is None and (arguments.all or not remote)):
        return client_entries.stdio_target(config, client_entries.this_program(config), platform, dialects)
    if arguments.data or arguments.model or arguments.tenant:
        raise Fault("invalid", "--data, --model and --tenant need --stdio: a running server has its own")
    return client_entries.http_target(_url(arguments, config), arguments.key, dialects)


def _dialects(arguments: argparse.Namespace, config: Config) -> tuple[str, ...]:
    """Return the dialects to use, in the order of addresses; none for all of a server, or for an address as it is."""
    names = tuple(arguments.dialect)
    if names == (_EVERY_DIALECT,) or (not names and (config.dialects or arguments.url)):
        return ()
    dialects = app.select_dialects(names or FIRST_DIALECTS)
    return tuple(dialect.name for dialect in app.DIALECTS if dialect in dialects)


def _report(client: Client, file: Path, result: ApplyResult, line: str, *, as_json: bool) -> None:
    row = {"file": str(file), "changed": result.changed, "backup": str(result.backup) if result.backup else None}
    show(row, f"{client.title}: {line}", as_json=as_json)


def _backup(result: ApplyResult) -> str:
    return f"; the previous content is in {result.backup.name}" if result.backup else ""


def _warn_of_address(target: Target, *, is_key_told: bool) -> None:
    """Report a mistake in the address of an entry, if the client would not reach the server there; a missing key only
    if it was not told before.
    """
    authority = urlsplit(target.url).netloc
    try:
        response = probe.handshake(target.url, target.key)
    except OSError as error:
        note(f"{authority} does not answer as a web server: {error}")
        return
    if response is None:
        here = "it with `quipu serve`, or with `quipu service install` for good"
        there = "the server there, and the proxy or tunnel that has the name"
        note(f"nothing listens on {authority}: start {here if client_entries.is_local(target.url) else there}")
    elif response.signs_in and not target.key:
        note(f"{authority} asks in the browser once the client logs in; a client that cannot takes a key: --key -")
    elif response.status == _UNAUTHORIZED:
        if not is_key_told:
            note(f"{authority} {'does not know that key' if target.key else 'requires a key: pass it with --key'}")
    elif response.name != client_entries.NAME:
        note(f"{target.url} is not the address of a Quipu server: it answers with status {response.status}")

"""Writes the hooks of clients into their files, shows them, and takes them out so that a file is as it was before."""

import argparse
import difflib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from kernel.cli import client_entries, hook_client
from kernel.cli.client_entries import text_of
from kernel.cli.clients import Client, config_file, locate
from kernel.cli.hook_entries import (
    HOOK_CLIENTS,
    MARK,
    Entries,
    HookClient,
    Level,
    entries,
    events_of,
    own,
    plugin,
    put,
    take,
)
from kernel.cli.output import note, show
from kernel.core.config import DEFAULT_PORT, Config
from kernel.core.data_dir import write_private
from kernel.core.errors import Fault
from kernel.core.ordinary_files import read_bytes

_BACKUPS = 50  # copies of a file that are looked at
_KEY_FILE = "hook.key"


def of_client(name: str) -> HookClient:
    for client in HOOK_CLIENTS:
        if name in (client.name, client.short):
            return client
    raise Fault("invalid", f"{name} has no hooks that Quipu knows: {', '.join(hooks.name for hooks in HOOK_CLIENTS)}")


def _clients(arguments: argparse.Namespace) -> Sequence[HookClient]:
    return [of_client(arguments.client)] if arguments.client else HOOK_CLIENTS


def apply(name: str, level: Level, arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> None:
    """Show the changes in the file of a client's hooks, and change it unless --print is given."""
    client = of_client(name)
    file = locate(client.path, config.environment, platform)
    before = text_of(file)
    options = _options(arguments, config, platform)
    words, env = client_entries.this_program(config)
    program = [*(["env", *(f"{key}={value}" for key, value in env.items())] if env else ()), *words]
    if client.form == "plugin":
        after = (
            plugin(client, level, program, options) if level != "none" else "" if before.startswith(MARK) else before
        )
        if before and not before.startswith(MARK):
            raise Fault("invalid", f"{file} was not changed: it is not a file of Quipu")
    else:
        new_entries = entries(client, level, program, options, platform)
        plain = before if own(before) == new_entries else _original(file, before, client)
        after = put(plain, client, new_entries)
    _change(client, file, before, after, arguments)


def remove(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> int:
    """Take the hooks out of the files of all clients, or of a single client."""
    for client in _clients(arguments):
        _remove(client, arguments, config, platform)
    return 0


def remove_of(name: str, arguments: argparse.Namespace, config: Config, platform: str) -> None:
    """Take the hooks out of the file of a client that has any."""
    for client in HOOK_CLIENTS:
        if client.name == name and installed(client, locate(client.path, config.environment, platform)):
            _remove(client, arguments, config, platform)


def _remove(client: HookClient, arguments: argparse.Namespace, config: Config, platform: str) -> None:
    file = locate(client.path, config.environment, platform)
    before = text_of(file)
    plain = before if client.form == "plugin" else _original(file, before, client)
    _change(client, file, before, "" if before.startswith(MARK) else plain, arguments)


def status(arguments: argparse.Namespace, config: Config, platform: str = sys.platform) -> None:
    for client in _clients(arguments):
        file = locate(client.path, config.environment, platform)
        events = installed(client, file)
        row = {"client": client.name, "file": str(file), "events": events}
        show(row, f"{client.name:15} {', '.join(events) or 'no hooks':40} {file}", as_json=arguments.json)


def installed(client: HookClient, file: Path) -> list[str]:
    """Return the events for which a client calls Quipu; none if its file cannot be read."""
    try:
        text = text_of(file)
        if client.form == "plugin":
            recall = [*client.recall.values()] if '"first-prompt"' in text else []
            return [*client.prime.values(), *recall] if text.startswith(MARK) else []
        return events_of(own(text))
    except Fault:
        return []


def _original(file: Path, text: str, client: HookClient) -> str:
    """Return the text without our entries: the copy of the file that becomes this text with them, if there is any."""
    ours = own(text)
    if not ours:
        return text
    plain = take(text)
    return next((copy for copy in _earlier(file) if _becomes(copy, text, client, ours)), plain)


def _becomes(copy: str, text: str, client: HookClient, ours: Entries) -> bool:
    try:
        return not own(copy) and put(copy, client, ours) == text
    except Fault:
        return False


def _earlier(file: Path) -> Sequence[str]:
    """Return the texts of the copies that `setup` has made of a file, and an empty text if each had our entries."""
    copies = sorted(file.parent.glob(f"{file.name}.*.bak"), reverse=True)[:_BACKUPS]
    texts = [text for copy in copies if (text := _text_at(copy)) is not None]
    return texts if any(not _has_ours(text) for text in texts) else [*texts, ""]


def _text_at(file: Path) -> str | None:
    try:
        return read_bytes(file).decode(errors="replace")
    except OSError:
        return None


def _has_ours(text: str) -> bool:
    try:
        return bool(own(text))
    except Fault:
        return False


def _change(client: HookClient, file: Path, before: str, after: str, arguments: argparse.Namespace) -> None:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(file), str(file), n=1)
    diff = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines).removesuffix("\n")
    row = {"client": client.name, "file": str(file), "changed": before != after}
    show(row, diff or f"{client.title}: {file} is up to date", as_json=arguments.json)
    if before == after or getattr(arguments, "shown", False):
        return
    if after:
        client_entries.replace_content(file, before.encode(), after.encode())
    else:
        file.unlink()
    if after and client.remark:
        note(client.remark)


def _options(arguments: argparse.Namespace, config: Config, platform: str) -> Sequence[str]:
    """Return the options for address, file of the key and data directory, unless they are the defaults."""
    address = (arguments.url or config.public or f"http://127.0.0.1:{config.port}").removesuffix("/")
    url = address.partition("/mcp")[0]
    if not (url.startswith("https://") or client_entries.is_local(url)):
        raise Fault("invalid", f"{url}: hooks go to this machine or to an https address")
    words = [] if url == f"http://127.0.0.1:{DEFAULT_PORT}" else ["--url", url]
    if arguments.key:
        words += ["--key-file", str(_write_key(config, client_entries.checked_key(arguments.key)))]
    # A server of this machine proves by its data directory that it is the user's own.
    return words if url.startswith("https://") else [*words, *client_entries.data_option(config, platform)]


def _write_key(config: Config, key: str) -> Path:
    """Write a key into a file that only the user can read, since a command line is shown to everybody; return it."""
    file = (config.data / _KEY_FILE).absolute()
    if _text_at(file) != key:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file, key.encode("ascii"))
    return file


def rekey_command(client: Client, config: Config, platform: str = sys.platform) -> str:
    """Return the command that adds a key to a client's entry for this server, which the first key locks out, and keeps
    its address and hooks; empty if there is no such entry.
    """
    try:
        file = config_file(client, config.environment, platform)
        entry = client_entries.find_entry(client, file, client_entries.NAME)
    except Fault:
        return ""
    url = client_entries.url_of(entry or {})
    if not (client_entries.is_local(url, config.port) or (config.public and url.startswith(f"{config.public}/"))):
        return ""
    hooks: list[str] = []
    for member in HOOK_CLIENTS:
        file = locate(member.path, config.environment, platform)
        if member.name == client.name and (events := installed(member, file)):
            hooks = ["--hooks", "recall" if {*member.recall.values()} & {*events} else "prime"]
    return shlex.join(["quipu", "setup", "--client", client.name, "--url", url, *hooks, "--key", "-"])


assert {client.short for client in HOOK_CLIENTS} == set(hook_client.CLIENTS)

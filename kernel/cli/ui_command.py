"""The command `quipu ui`: opens the console of a running server in the browser, logged in by a code that works once."""

import argparse
import sys
import webbrowser
from collections.abc import Iterator

from kernel.cli import client_entries, probe
from kernel.cli.clients import CLIENTS, config_file
from kernel.cli.output import note
from kernel.cli.probe import LoginCode
from kernel.core.config import Config
from kernel.core.errors import Fault
from kernel.security.local_access import connectable


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Opens the console and prints its address; raises Fault if no server answers, or if it refuses the given key.

    Without --key that of a client's entry for this server is used, as far as there is one; the page then asks for it.
    """
    if not config.ui:
        raise Fault("disabled", "The console is switched off: QUIPU_UI=0.")
    probe.check_health(config.host, config.port)
    host = connectable(config.host)
    authority = f"{f'[{host}]' if ':' in host else host}:{config.port}"
    key = client_entries.typed_key(arguments.key)
    code = _first_code(authority, [key] if key else list(_keys_of_clients(config)))
    if key and code is None:
        raise Fault("invalid", f"The server on {authority} does not know that key, or needs none.")
    address = f"http://{authority}/ui"
    link = f"{address}/login#{code.code}" if code else address
    if webbrowser.open(link):
        note(address)
        return 0
    note("No browser could be opened here.")
    note(f"{link} opens it within {code.seconds} seconds, once." if code else link)
    return 0


def _keys_of_clients(config: Config) -> Iterator[str]:
    """Yield the keys in the entries of this machine's clients for this server."""
    for client in CLIENTS:
        try:
            file = config_file(client, config.environment, sys.platform)
            entry = client_entries.find_entry(client, file, client_entries.NAME) if file.is_file() else None
            key = "" if entry is None else client_entries.checked_key(client_entries.bearer_of(entry))
        except Fault:  # `quipu doctor` reports what is wrong with it
            continue
        if entry is not None and key and client_entries.is_local(client_entries.url_of(entry), config.port):
            yield key


def _first_code(authority: str, keys: list[str]) -> LoginCode | None:
    """Return the code for the first key that the server accepts."""
    return next((code for key in dict.fromkeys(keys) if (code := probe.login_code(authority, key))), None)

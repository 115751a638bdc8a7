"""The command `quipu ui`: opens the console of a running server in the browser, logged in by a code that works once."""

import argparse
import sys
import webbrowser
from collections.abc import Iterator

from kernel.cli import client_entries, probe
from kernel.cli.clients import CLIENTS, config_file
from kernel.cli.output import note
from kernel.core.config import Config
from kernel.core.errors import Fault


def run(arguments: argparse.Namespace, config: Config) -> int:
    """Open the console and print its address; raises Fault if no server answers, or if it refuses the key.

    Without --key the first accepted key of a client's entry for this server is used; if there is none, the page asks.
    """
    if not config.ui:
        raise Fault("disabled", "The console is switched off: QUIPU_UI=0.")
    probe.check_health(config.host, config.port)
    authority = probe.authority_of(config)
    key = client_entries.typed_key(arguments.key)
    keys = dict.fromkeys([key] if key else _keys_of_clients(config))
    code = next((code for key in keys if (code := probe.login_code(authority, key))), None)
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
    for client in CLIENTS:
        try:
            file = config_file(client, config.environment, sys.platform)
            entry = client_entries.find_entry(client, file, client_entries.NAME) if file.is_file() else None
            key = "" if entry is None else client_entries.checked_key(client_entries.bearer_of(entry))
        except Fault:  # `quipu doctor` reports it
            continue
        if entry is not None and key and client_entries.is_local(client_entries.url_of(entry), config.port):
            yield key

"""The command `quipu ui`: opens the console of a running server in the browser."""

import webbrowser

from kernel.cli import probe
from kernel.cli.output import note
from kernel.config import Config
from kernel.errors import Fault


def run(config: Config) -> int:
    """Prints the address of the console and opens it; raises Fault where no server answers there."""
    if not config.ui:
        raise Fault("disabled", "The console is switched off: QUIPU_UI=0.")
    probe.check_health(config.host, config.port)
    reached = probe.connectable(config.host)
    host = f"[{reached}]" if ":" in reached else reached
    address = f"http://{host}:{config.port}/ui"
    if not webbrowser.open(address):
        note("No browser could be opened here.")
    note(address)
    return 0

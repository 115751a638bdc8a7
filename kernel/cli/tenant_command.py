"""`quipu tenant`, and what `quipu store` does with the databases of the directory."""

import argparse
import sys
from contextlib import closing

from kernel.cli.faults import or_raise
from kernel.cli.output import note, show
from kernel.cli.progress_bar import ProgressBar
from kernel.core.config import Config
from kernel.operations import directory


def run_tenant(arguments: argparse.Namespace, config: Config) -> int:
    """Lists tenants, or moves one."""
    if arguments.action == "move":
        return _move(arguments, config)
    for name, address in or_raise(directory.tenants, config):
        show({"tenant": name, "store": address}, f"{name}  {address}", as_json=arguments.json)
    return 0


def _move(arguments: argparse.Namespace, config: Config) -> int:
    name: str = arguments.name
    to: str = arguments.to
    with closing(ProgressBar("move", sys.stderr)) as bar:

        def report(rows: int) -> None:
            bar(rows, rows)

        done = or_raise(directory.move_tenant, config, name, to, report)
    found = {"tenant": name, "store": to, **done._asdict()}
    line = f"{name} is there: {done.rows} rows copied, writes waited for {done.paused:.1f} s"
    show(found, line, as_json=arguments.json)
    return 0


def list_servers(arguments: argparse.Namespace, config: Config) -> int:
    """Prints the databases, with the number of their tenants."""
    for one in or_raise(directory.servers, config):
        new = "takes new ones" if one.new else "takes no new ones"
        show(one._asdict(), f"{one.address}  tenants: {one.tenants}, {new}", as_json=arguments.json)
    return 0


def add_server(arguments: argparse.Namespace, config: Config) -> int:
    """Lets new tenants go to a database."""
    or_raise(directory.add_server, config, arguments.address)
    note("new tenants go to the database that has the fewest")
    return 0


def remove_server(arguments: argparse.Namespace, config: Config) -> int:
    """Lets no new tenants go to a database."""
    or_raise(directory.remove_server, config, arguments.address)
    note("the tenants that it has stay there: `quipu tenant move` moves one")
    return 0

"""`quipu store` and `quipu tenant`: copies of tenants, and the databases among which they are spread."""

import argparse
import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from kernel.calls.dispatch import catch_faults
from kernel.cli.faults import or_raise
from kernel.cli.output import note, show
from kernel.cli.progress_bar import ProgressBar
from kernel.core.config import STORE_SCHEMES, Config
from kernel.core.errors import Fault
from kernel.core.limits import BOUNDS
from kernel.engines.opening import end_of, open_reader, open_writer
from kernel.operations import directory
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.tenant_copy import Copied, copy
from kernel.store.transaction import Tx

_MAX_MILLISECONDS = BOUNDS["store_milliseconds"].high
_CONTEXT = CallContext("kernel", "store copy")


def copy_store(arguments: argparse.Namespace, config: Config) -> int:
    """Copies a tenant, and prints how much; the target is whole or as it was."""
    source, target = (_config(config, given) for given in (arguments.source, arguments.target))
    app.require_database(source)
    with closing(ProgressBar("copy", sys.stderr)) as bar:
        done: Copied = or_raise(_copy, source, target, bar)
    show(done._asdict(), f"{done.rows} rows of {done.tables} tables", as_json=arguments.json)
    return 0


def _config(config: Config, given: str) -> Config:
    if given.startswith(STORE_SCHEMES):
        return config._replace(store=given)
    return config._replace(store="", data=Path(given))


def _copy(source: Config, target: Config, bar: Callable[[int, int], None]) -> Copied:
    rows = 0

    def report(_table: str, count: int) -> None:
        nonlocal rows
        rows += count
        bar(rows, rows)

    with _opened(source) as (_, there), _opened(target) as (context, _), open_reader(source.file, there) as reader:

        def work(tx: Tx) -> Copied:
            tx.one("kernel.setting.count_migrations", int)  # takes the snapshot
            with open_writer(target.file, context) as db, db.writing(_CONTEXT):
                return copy(end_of(reader), end_of(db), report)

        return reader.read(_CONTEXT, work)


@contextmanager
def _opened(config: Config) -> Generator[tuple[StoreContext, StoreContext]]:
    """The context of a store for writing, and with time enough to read all of it."""
    context = app.context_of(config)
    access, _ = app.open_data(config, context)
    limits: Any = context.call_limits._replace(milliseconds=_MAX_MILLISECONDS)
    with closing(access):
        yield context, context._replace(call_limits=limits)


def describe_database(config: Config) -> tuple[Literal["ok", "wrong"], str, str, str]:
    """Return the findings of `quipu doctor` on a database that takes the place of the file."""
    found = catch_faults(app.prepare_shared, config)
    if isinstance(found, Fault):
        return "wrong", "database", found.message.removesuffix("."), "see QUIPU_STORE in docs/scaling.md"
    return "ok", "database", f"PostgreSQL, with schema {found.schema}", ""


def list_tenants(arguments: argparse.Namespace, config: Config) -> int:
    """Print the tenants and their databases."""
    for name, address in or_raise(directory.tenants, config):
        show({"tenant": name, "store": address}, f"{name}  {address}", as_json=arguments.json)
    return 0


def move_tenant(arguments: argparse.Namespace, config: Config) -> int:
    """Move a tenant to another database."""
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

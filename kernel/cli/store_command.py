"""`quipu store`: copies a tenant from one store to another, of whichever engine, and names databases for tenants."""

import argparse
import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from kernel.calls.dispatch import catch_faults
from kernel.cli.faults import or_raise
from kernel.cli.output import show
from kernel.cli.progress_bar import ProgressBar
from kernel.cli.tenant_command import add_server, list_servers, remove_server
from kernel.core.config import STORE_SCHEMES, Config
from kernel.core.errors import Fault
from kernel.core.limits import BOUNDS
from kernel.engines.opening import end_of, open_reader, open_writer
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.tenant_copy import Copied, copy
from kernel.store.transaction import Tx

_MAX_MILLISECONDS = BOUNDS["store_milliseconds"].high
_CONTEXT = CallContext("kernel", "store copy")


def run_store(arguments: argparse.Namespace, config: Config) -> int:
    """Copies a tenant, or works on the databases of the directory."""
    return _ACTIONS[arguments.action](arguments, config)


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


_ACTIONS = {"copy": copy_store, "list": list_servers, "add": add_server, "remove": remove_server}

"""`quipu store` and `quipu tenant`: tenants and their keys, copies of them, and the databases among which they are
spread.

The directory of the databases is in that of QUIPU_STORE, which is called home and has an empty address there."""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

from kernel.cli.output import confirm, note, show
from kernel.cli.progress_bar import ProgressBar
from kernel.core.config import STORE_SCHEMES, Config
from kernel.core.data_dir import tenant_name
from kernel.core.errors import Fault
from kernel.core.limits import BOUNDS
from kernel.engines.opening import open_reader, open_writer
from kernel.engines.postgres.database import pool_of
from kernel.engines.postgres.driver import Pool, address_parts, load_driver
from kernel.engines.postgres.tenants import placement
from kernel.engines.postgres.tenants.moving import move
from kernel.operations.shared_store import changing_keys
from kernel.operations.tenant_removal import erase, places, require_removable
from kernel.security import api_keys
from kernel.server import app
from kernel.store.context import CallContext, StoreContext
from kernel.store.tenant_copy import Copied, copy
from kernel.store.transaction import Tx

_UNUSED = "no call yet"
_HOME = "home"
_NEEDED = "Tenants are spread over PostgreSQL databases: name the one with the directory in QUIPU_STORE, or by --store."
_CONTEXT = CallContext("kernel", "store copy")


def list_tenants(arguments: argparse.Namespace, config: Config) -> int:
    stores = places(config)
    with changing_keys(config):
        keys = Counter(key.tenant for key in api_keys.read(config.data))
    for name in sorted({*stores, *keys}):
        line = f"{name}  {stores.get(name, _UNUSED)}" + (f"  keys: {keys[name]}" if keys[name] else "")
        show({"tenant": name, "store": stores.get(name), "keys": keys[name]}, line, as_json=arguments.json)
    return 0


def remove_tenant(arguments: argparse.Namespace, config: Config) -> int:
    name = tenant_name(arguments.name)
    require_removable(config, name)
    if not arguments.yes:
        confirm(f"Erase all memories and keys of the tenant {name}, which no command brings back?", "tenant remove")
    receipt = erase(config, name)
    counts = f"{receipt.keys} keys, {receipt.files} files of {receipt.bytes} bytes"
    rows = f", {receipt.rows} rows" if config.store else ""
    line = f"{name} was erased at {receipt.at}: {counts}{rows}; backups still have it"
    show(receipt._asdict(), line, as_json=arguments.json)
    return 0


def copy_store(arguments: argparse.Namespace, config: Config) -> int:
    """Copy a tenant, and print how much; the target is whole or as it was."""
    source, target = (
        config._replace(store=place) if place.startswith(STORE_SCHEMES) else config._replace(store="", data=Path(place))
        for place in (arguments.source, arguments.target)
    )
    app.require_database(source)
    with closing(ProgressBar("copy", sys.stderr)) as bar:
        counts = _copy(source, target, bar)
    show(counts._asdict(), f"{counts.rows} rows of {counts.tables} tables", as_json=arguments.json)
    return 0


def _copy(source: Config, target: Config, bar: Callable[[int, int], None]) -> Copied:
    with _context(source) as (_, there), _context(target) as (context, _), open_reader(source.file, there) as reader:

        def work(tx: Tx) -> Copied:
            with open_writer(target.file, context) as db, db.writing(_CONTEXT) as copied:
                return copy(tx, copied, bar)

        return reader.read(_CONTEXT, work)


@contextmanager
def _context(config: Config) -> Generator[tuple[StoreContext, StoreContext]]:
    """Open a store; yield its context for writing, and with time enough to read all of it."""
    context = app.context_of(config)
    access, _ = app.open_data(config, context)
    limits = context.call_limits._replace(milliseconds=BOUNDS["store_milliseconds"].high)
    with closing(access):
        yield context, context._replace(call_limits=limits)


def list_servers(arguments: argparse.Namespace, config: Config) -> int:
    for server in placement.servers(_home(config)):
        server = server._replace(address=server.address or _HOME)
        new = "takes new ones" if server.new else "takes no new ones"
        line = f"{server.address}  tenants: {server.tenants}, {new}"
        show(server._asdict(), line, as_json=arguments.json)
    return 0


def add_server(arguments: argparse.Namespace, config: Config) -> int:
    home, address = _home(config), _address(config, arguments.address)
    placement.add_server(home, address, pool_of(address or config.store))
    note("new tenants go to the database that has the fewest")
    return 0


def remove_server(arguments: argparse.Namespace, config: Config) -> int:
    placement.remove_server(_home(config), _address(config, arguments.address))
    note("the tenants that it has stay there: `quipu tenant move` moves one")
    return 0


def move_tenant(arguments: argparse.Namespace, config: Config) -> int:
    name: str = arguments.name
    if tenant_name(name) not in dict(placement.placements(_home(config))):
        raise Fault("not_found", f"There is no tenant {name}: `quipu tenant list` shows all.")
    with closing(ProgressBar("move", sys.stderr)) as bar:
        result = move(config.store, name, _address(config, arguments.to), pool_of, lambda rows: bar(rows, rows))
    row = {"tenant": name, "store": arguments.to, **result._asdict()}
    line = f"{name} is there: {result.rows} rows copied, writes waited for {result.paused:.1f} s"
    show(row, line, as_json=arguments.json)
    return 0


def _home(config: Config) -> Pool:
    if not config.store:
        raise Fault("invalid", _NEEDED)
    return pool_of(config.store)


def _address(config: Config, address: str) -> str:
    """Return the address of a database in the directory; raises Fault for other texts, and for a password in it."""
    if address in (_HOME, config.store):
        return ""
    psycopg = load_driver()
    try:
        parts, _ = address_parts(address)
    except psycopg.Error:
        parts = {}
    if not parts or not address.startswith(STORE_SCHEMES):
        raise Fault("invalid", f"A database is {_HOME} or an address such as postgresql://user@host/database.")
    if "password" in parts:
        raise Fault("invalid", "The directory keeps addresses: leave the password to PGPASSFILE or PGPASSWORD.")
    return address

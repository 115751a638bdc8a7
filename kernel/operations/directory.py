"""The databases among which tenants are spread, by the directory in the one of QUIPU_STORE, which is called home."""

from typing import TYPE_CHECKING

from kernel.core.config import STORE_SCHEMES, Config
from kernel.core.data_dir import tenant_name
from kernel.core.errors import Fault

if TYPE_CHECKING:
    from kernel.engines.postgres.pool import Pool
    from kernel.engines.postgres.tenants.moving import Moved, Report
    from kernel.engines.postgres.tenants.placement import Server

HOME = "home"
_NEEDED = "Tenants are spread over PostgreSQL databases: name the one with the directory in QUIPU_STORE, or by --store."


def tenants(config: Config) -> list[tuple[str, str]]:
    """Return every tenant and the database it is on, by name; raises Fault."""
    from kernel.engines.postgres.tenants.placement import placements

    return [(name, address or HOME) for name, address in placements(_home(config))]


def servers(config: Config) -> "list[Server]":
    """Return every database that has tenants or takes new ones; raises Fault."""
    from kernel.engines.postgres.tenants.placement import servers as found

    return [one._replace(address=one.address or HOME) for one in found(_home(config))]


def add_server(config: Config, given: str) -> None:
    """New tenants may go to a database, which gets the schema; raises Fault."""
    from kernel.engines.postgres.database import pool_of
    from kernel.engines.postgres.tenants.placement import add_server as add

    home, address = _home(config), _address(config, given)
    add(home, address, pool_of(address or config.store))


def remove_server(config: Config, given: str) -> None:
    """New tenants no longer go to a database; raises Fault."""
    from kernel.engines.postgres.tenants.placement import remove_server as remove

    remove(_home(config), _address(config, given))


def move_tenant(config: Config, name: str, to: str, report: "Report") -> "Moved":
    """Moves a tenant to a database while servers use it; raises Fault."""
    from kernel.engines.postgres.database import pool_of
    from kernel.engines.postgres.tenants.moving import move

    known = dict(tenants(config))
    if tenant_name(name) not in known:
        raise Fault("not_found", f"There is no tenant {name}: `quipu tenant list` shows all.")
    return move(config.store, name, _address(config, to), pool_of, report)


def _home(config: Config) -> "Pool":
    if not config.store:
        raise Fault("invalid", _NEEDED)
    from kernel.engines.postgres.database import pool_of

    return pool_of(config.store)


def _address(config: Config, given: str) -> str:
    """Return the name of a database in the directory; raises Fault for other texts, and for a password in it."""
    from kernel.engines.postgres.driver import load_driver

    if given in (HOME, config.store):
        return ""
    psycopg = load_driver()
    try:
        known = psycopg.conninfo.conninfo_to_dict(given)
    except psycopg.Error:
        known = {}
    if not known or not given.startswith(STORE_SCHEMES):
        raise Fault("invalid", f"A database is {HOME} or an address such as postgresql://user@host/database.")
    if "password" in known:
        raise Fault("invalid", "The directory keeps addresses: leave the password to PGPASSFILE or PGPASSWORD.")
    return given

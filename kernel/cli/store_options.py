"""The options that name a database, and the parser of `quipu store`."""

import argparse

from kernel.core import config
from kernel.core.data_dir import MAIN
from kernel.core.errors import Fault

_PLACE = "postgresql://user@host/database"


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Where memories are, if not in a file."""
    parser.add_argument("--store", type=_address, metavar="ADDRESS", help=f"{_PLACE} in place of a file (QUIPU_STORE)")
    parser.add_argument("--read-store", type=_address, metavar="ADDRESS", help="a replica for reads (QUIPU_READ_STORE)")


def add_store_parser(store: argparse.ArgumentParser) -> None:
    """What can be done with whole stores."""
    actions = store.add_subparsers(dest="action", required=True)
    copy = actions.add_parser("copy", help="copy a tenant into an empty one")
    copy.add_argument("source", help=f"data directory, or {_PLACE}")
    copy.add_argument("target", help="the same; it has no memories yet")
    copy.add_argument("--tenant", help=f"tenant ({MAIN})")
    home = _home()
    actions.add_parser("list", parents=[home], help="list the databases that tenants are on")
    add = actions.add_parser("add", parents=[home], help="let new tenants go to a database")
    remove = actions.add_parser("remove", parents=[home], help="let no new tenants go to a database")
    for one in (add, remove):
        one.add_argument("address", help=f"{_PLACE}, or home")


def add_tenant_parser(tenant: argparse.ArgumentParser) -> None:
    """What can be done with the tenants of several databases."""
    actions = tenant.add_subparsers(dest="action", required=True)
    home = _home()
    actions.add_parser("list", parents=[home], help="list the tenants with their databases")
    move = actions.add_parser("move", parents=[home], help="move a tenant to another database")
    move.add_argument("name", help="the tenant")
    move.add_argument("--to", required=True, metavar="ADDRESS", help=f"{_PLACE}, or home")


def _home() -> argparse.ArgumentParser:
    home = argparse.ArgumentParser(add_help=False)
    home.add_argument("--store", type=_address, metavar="ADDRESS", help="the database with the directory (QUIPU_STORE)")
    return home


def _address(given: str) -> str:
    try:
        return config.from_mapping({"QUIPU_STORE": given}).store
    except Fault as fault:
        raise argparse.ArgumentTypeError(fault.message) from None

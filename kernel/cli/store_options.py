"""The options that name a database, and the parser of `quipu store`."""

import argparse

from kernel import config
from kernel.data_dir import MAIN
from kernel.errors import Fault

_PLACE = "postgresql://user@host/database"


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Where memories are, if not in a file."""
    parser.add_argument("--store", type=_address, metavar="ADDRESS", help=f"{_PLACE} in place of a file (QUIPU_STORE)")
    parser.add_argument("--read-store", type=_address, metavar="ADDRESS", help="a replica for reads (QUIPU_READ_STORE)")


def add_store_parser(store: argparse.ArgumentParser) -> None:
    """What can be done with whole stores."""
    copy = store.add_subparsers(dest="action", required=True).add_parser("copy", help="copy a tenant into an empty one")
    copy.add_argument("source", help=f"data directory, or {_PLACE}")
    copy.add_argument("target", help="the same; it has no memories yet")
    copy.add_argument("--tenant", help=f"tenant ({MAIN})")


def _address(given: str) -> str:
    try:
        return config.from_mapping({"QUIPU_STORE": given}).store
    except Fault as fault:
        raise argparse.ArgumentTypeError(fault.message) from None

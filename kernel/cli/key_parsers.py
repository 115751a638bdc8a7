"""The parser of `quipu key`."""

import argparse
from pathlib import Path

from kernel.cli.store_options import add_store_options
from kernel.core.data_dir import MAIN
from kernel.security.permissions import Permission


def add_key_parsers(key: argparse.ArgumentParser) -> None:
    """What can be done with keys."""
    actions = key.add_subparsers(dest="key", required=True)
    data = argparse.ArgumentParser(add_help=False)
    data.add_argument("--data", type=Path, help="data directory (QUIPU_DATA)")
    add_store_options(data)
    create = actions.add_parser("create", parents=[data], help="create a key and print its secret once")
    create.add_argument("--tenant", default=MAIN, help=f"tenant of the key ({MAIN})")
    create.add_argument(
        "--scope", choices=[permission.name for permission in Permission], required=True, help="permission"
    )
    create.add_argument("--dialect", action="append", default=[], help="allow only this dialect; may be repeated")
    create.add_argument("--expires", metavar="WHEN", help="90d, 12h, 30m or an ISO 8601 time (never)")
    create.add_argument("--name", default="", help="label in `quipu key list`")
    actions.add_parser("list", parents=[data], help="list all keys, without secrets")
    revoke = actions.add_parser("revoke", parents=[data], help="revoke a key; takes effect within a second")
    revoke.add_argument("id", help="id of the key, from `quipu key list`")
    delete = actions.add_parser("delete", parents=[data], help="delete a key, so that it is no longer listed")
    delete.add_argument("id", help="id of the key, from `quipu key list`")
    actions.add_parser("reset", parents=[data], help="delete every key; a server on this machine then asks for none")

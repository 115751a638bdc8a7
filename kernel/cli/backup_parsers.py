"""The options of backup, restore and replica, and those of serve for scheduled backups and copies that follow."""

import argparse
from pathlib import Path
from typing import Any

from kernel.core import config
from kernel.core.errors import Fault

KEPT = config.Config._field_defaults["backup_keep"]


def add_parsers(commands: Any, data: argparse.ArgumentParser) -> None:
    """Adds the commands; `data` has the options that name the store."""
    backup = commands.add_parser("backup", parents=[data], help="copy the database, or everything, while it is in use")
    backup.add_argument("target", type=Path, nargs="?", help="file to write (quipu-TIME.db in the data directory)")
    backup.add_argument("--all", type=Path, metavar="DIR", help="copy all tenants, files of notes, keys and settings")
    backup.add_argument("--to", type=Path, metavar="DIR", help="the same into a dated folder below this one")
    backup.add_argument("--keep", type=_count, metavar="N", default=KEPT, help=f"with --to: newest to keep ({KEPT})")
    backup.add_argument("--every", type=_duration, metavar="TIME", help="with --to: go on so, such as 1h")
    replica = commands.add_parser("replica", parents=[data], help="keep a copy that follows, for serve --follow")
    replica.add_argument("target", type=Path, help="folder of the copy; an empty one at first")
    restore = commands.add_parser("restore", parents=[data], help="put a backup in place; the server must be stopped")
    restore.add_argument("source", type=Path, help="file of `backup FILE`, or folder of `backup --all DIR`")


def add_serve_options(serve: argparse.ArgumentParser) -> None:
    """Adds what a server makes of backups and copies."""
    serve.add_argument(
        "--backup-to", type=Path, metavar="DIR", help="copy everything into dated folders there (QUIPU_BACKUP_TO)"
    )
    serve.add_argument(
        "--follow",
        action="store_true",
        default=None,
        help="serve a copy of `quipu replica`, read-only (QUIPU_FOLLOW=1)",
    )
    serve.add_argument("--backup-every", type=_duration, metavar="TIME", help="how often (QUIPU_BACKUP_EVERY, 1h)")
    serve.add_argument("--backup-keep", type=_count, metavar="N", help="newest to keep (QUIPU_BACKUP_KEEP, 24)")


def _duration(given: str) -> int:
    try:
        return config.duration(given, given)
    except Fault as fault:
        raise argparse.ArgumentTypeError(fault.message.replace("is a", "is no")) from None


def _count(given: str) -> int:
    try:
        return config.from_mapping({"QUIPU_BACKUP_KEEP": given}).backup_keep
    except Fault:
        raise argparse.ArgumentTypeError(f"{given} is not a number from 1 to 100000") from None

"""Rewrites a database file without its free pages."""

from contextlib import suppress
from typing import TYPE_CHECKING

from kernel.store.sqlite.errors import DISK_FULL, IO_ERRORS

if TYPE_CHECKING:
    from kernel.store.sqlite.connection import Connection


def vacuum(db: "Connection") -> None:
    """Rewrites the file by way of a temporary one."""
    db.keep_temporary_pages(in_file=True)
    db.script("VACUUM")


def vacuum_without_undo(db: "Connection") -> None:
    """Rewrites the file, then again without undo data, which a failure must leave as it is."""
    vacuum(db)
    with db.writing() as tx:
        deleted = tx.run("kernel.audit.delete_all_undo") + tx.run("kernel.audit.delete_all_parts")
    if deleted:
        with suppress(*DISK_FULL, *IO_ERRORS):
            vacuum(db)

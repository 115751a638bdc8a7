"""Rewrites a database file: without its free pages, and with checksums where this system can write them."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kernel.store.sqlite.errors import DISK_FULL, IO_ERRORS

if TYPE_CHECKING:
    from kernel.store.sqlite.connection import Connection


def vacuum(db: "Connection") -> None:
    """Rewrites the file by way of a temporary one."""
    db.request_checksums()
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


@contextmanager
def unverified(db: "Connection") -> Generator[None]:
    """Lets pages with a wrong checksum be read; what is written of them gets a right one."""
    db.pragma("checksum_verification", "off")
    try:
        yield
    finally:
        db.pragma("checksum_verification", "on")

"""Rewrites a database file without its free pages."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel.engines.sqlite.connection import Connection


def vacuum(db: "Connection") -> None:
    """Rewrites the file by way of a temporary one."""
    db.keep_temporary_pages(in_file=True)
    db.script("VACUUM")

"""A file of SQLite with the rows of a tenant, as a copy beside the data directory's other files."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.engines.migrations import migrate
from kernel.engines.postgres.copy_end import TenantEnd
from kernel.engines.sqlite.connection import Connection as FileConnection
from kernel.engines.sqlite.copy_end import FileEnd
from kernel.engines.sqlite.unfinished import finish, unfinished
from kernel.store.context import StoreContext
from kernel.store.statements import load
from kernel.store.tenant_copy import copy
from kernel.store.transaction import Tx

if TYPE_CHECKING:
    from kernel.engines.postgres.connection import Connection

Progress = Callable[[int, int], None]


def copy_to_file(tx: Tx, db: "Connection", target: Path, progress: Progress | None) -> None:
    """Copy the rows that the connection sees; the file appears when it is whole."""
    tx.one("kernel.setting.count_migrations", int)  # takes the snapshot
    texts = {name: statement.text for name, statement in load().items()}
    done = 0

    def report(_table: str, rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, done)

    with unfinished(target) as part:
        part.touch(mode=0o600)
        file = FileConnection(part, StoreContext(texts), readonly=False)
        try:
            migrate(file)
            with file.writing():
                copy(TenantEnd(db), FileEnd(file), report)
            file.pragma("journal_mode", "delete")
        finally:
            file.close()
        finish(part, target)

"""Opens a store for a command: the file of SQLite, or the database of the context."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from kernel.engines.sqlite import connection as sqlite
from kernel.store.context import StoreContext
from kernel.store.engine import CommandConnection

if TYPE_CHECKING:
    from kernel.store.tenant_copy import End


@contextmanager
def open_writer(file: Path, context: StoreContext) -> Generator[CommandConnection]:
    if context.connect is None:
        with sqlite.open_writer(file, context) as db:
            yield db
    else:
        with _connected(context) as database:
            yield database


@contextmanager
def open_reader(file: Path, context: StoreContext) -> Generator[CommandConnection]:
    if context.connect is None:
        db = sqlite.Connection(file, context, readonly=True)
        try:
            yield db
        finally:
            db.close()
    else:
        with _connected(context) as database:
            yield database


def end_of(db: CommandConnection) -> "End":
    """Return a connection that is in a transaction, as a copy uses it."""
    if isinstance(db, sqlite.Connection):
        from kernel.engines.sqlite.copy_end import FileEnd

        return FileEnd(db)
    from kernel.engines.postgres.connection import Connection
    from kernel.engines.postgres.copy_end import TenantEnd

    return TenantEnd(cast("Connection", db))


@contextmanager
def _connected(context: StoreContext) -> Generator[CommandConnection]:
    assert context.connect is not None
    db: CommandConnection = context.connect(context)
    try:
        yield db
    finally:
        db.close()

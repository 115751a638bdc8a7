"""The outcome of a transaction whose commit was not answered: a mark in it tells, which is looked for afterwards."""

import os
import time
from contextlib import suppress
from typing import Any, Protocol

from kernel.core.errors import Fault
from kernel.engines.postgres import bounds
from kernel.engines.postgres.driver import load_driver
from kernel.engines.postgres.rows import Row

UNKNOWN = "It is not known whether the change was recorded: the connection to the database was lost."


class Connection(Protocol):
    """The part of a connection that this needs."""

    def query(self, name: str, /, **params: Any) -> list[Row]:
        """Return the rows of a statement of `sql/postgres/engine`."""
        ...

    def command(self, text: str) -> Any:
        """Runs a command."""
        ...

    def begin_again(self) -> None:
        """Opens a transaction with the lock of the tenant, on a connection that is not lost."""
        ...


def add_mark(db: Connection) -> int:
    """Marks the transaction before it commits, which changes nothing that a caller sees."""
    mark = int.from_bytes(os.urandom(8)) >> 1
    db.query("engine.transaction.end", mark=mark)
    if mark % bounds.MARKS_FORGOTTEN == 0:
        db.query("engine.transaction.forget_marks")
    return mark


def has_committed(db: Connection, mark: int) -> bool | None:
    """Return whether the transaction with this mark has committed; None if the database cannot be asked for so long."""
    end = time.monotonic() + bounds.FATE_SECONDS
    while time.monotonic() < end:
        with suppress(Fault, load_driver().Error):
            return _find(db, mark)
        time.sleep(bounds.FATE_POLL)
    return None


def _find(db: Connection, mark: int) -> bool:
    """Looks once. The lock waits for whoever may write the mark yet.

    What is found is written anew: this commit waits until a synchronous standby has all that was committed before. A
    standby, which may lack the mark yet, refuses to write.
    """
    db.begin_again()
    found = bool(db.query("engine.transaction.find_mark", mark=mark))
    db.command("COMMIT")
    return found

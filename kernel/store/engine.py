"""The interface of a database engine for the store: `kernel.engines.sqlite`, or `kernel.engines.postgres` if
configured.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from kernel.core.errors import CatchFaults, Fault
from kernel.store.audit import ChangeRecorder
from kernel.store.context import CallContext, StoreContext
from kernel.store.long_work import Steps
from kernel.store.transaction import Tx

R = TypeVar("R")


class ReadConnection(Protocol):
    """A connection that cannot write."""

    def read(self, call_context: CallContext, work: Callable[[Tx], R]) -> R:
        """Return `work(tx)` in one snapshot; raises Fault if it exceeds its cost limit or is interrupted."""
        ...

    def interrupt(self) -> None:
        """Stops the statement that another thread runs on this connection."""
        ...

    def drop_pages(self) -> None:
        """Frees the pages that the connection has in memory, while no statement runs."""
        ...

    def close(self) -> None:
        """Closes the connection; safe to call twice."""
        ...


class WriteConnection(Protocol):
    """The connection of the writer: one transaction for a group of calls, a savepoint for each call."""

    @property
    def total_changes(self) -> Callable[[], int]:
        """Return the number of rows changed since the connection was opened."""
        ...

    def begin(self, call_context: CallContext, *, large: bool = False) -> Tx:
        """Opens a write transaction and takes the write lock; a `large` one may change more than fits into memory."""
        ...

    def call(
        self, tx: Tx, call_context: CallContext, catch_faults: CatchFaults, work: Callable[[Tx], R], budget: int = 1
    ) -> R | Fault:
        """Runs one call under its own savepoint, with `budget` times the usual cost limit; a Fault is rolled back."""
        ...

    def record_changes(self, limit_bytes: int) -> ChangeRecorder:
        """Records changes from now on, in changesets that can be reverted, of at most `limit_bytes`."""
        ...

    def commit(self, tx: Tx) -> None:
        """Flushes deferred work and commits durably."""
        ...

    def rollback(self) -> None: ...

    def close(self) -> None:
        """Closes the connection; safe to call twice."""
        ...


class CommandConnection(ReadConnection, WriteConnection, Protocol):
    """A connection for commands, which reads and writes by itself."""

    def writing(self, call_context: CallContext = ...) -> AbstractContextManager[Tx]:
        """Return a write transaction that commits at the end of the block and rolls back on any exception."""
        ...

    def check_full_text(self) -> tuple[bool, bool]:
        """Return whether words and parts of words agree with the documents; others write meanwhile."""
        ...

    def rebuild_full_text(self) -> Steps[None]:
        """Makes the full-text indexes anew from the documents, in steps; another call resumes a rebuild that was cut
        off.
        """
        ...

    def orphans(self) -> int:
        """Return the number of rows that refer to a row that is not there, without those of derived tables."""
        ...


class DatabaseUse(NamedTuple):
    """How a process uses its databases: connections lent, allowed and waited for, waits for answers and their seconds,
    and the replica: its state, reads that went past it, and bytes of the log that it had not replayed.
    """

    used: int
    most: int
    waiting: int
    trips: int
    seconds: float
    replica: str = ""
    passed_over: int = 0
    lag: int = 0


class Database(Protocol):
    """One database as a Store uses it. Its schema is current before the first connection is opened."""

    @property
    def context(self) -> StoreContext: ...

    @property
    def file(self) -> Path: ...

    def start(self, catch_faults: CatchFaults) -> None:
        """Starts background work, such as checkpoints."""
        ...

    def reader(self) -> ReadConnection: ...

    def writer(self) -> WriteConnection: ...

    @property
    def after_commit(self) -> Callable[[Any], None]:
        """Housekeeping on the writer's thread and connection, after each group was answered."""
        ...

    @property
    def is_remote(self) -> bool:
        """Return whether a statement may wait for another machine."""
        ...

    def probe(self) -> Mapping[str, str]:
        """Return what the database says of its health; it may wait, and raises Fault if nothing answers."""
        ...

    @property
    def read_head_start(self) -> float:
        """Return the seconds that a read runs before the next one begins on another thread."""
        ...

    def sizes(self) -> tuple[int, int]:
        """Return bytes of the database and of its log."""
        ...

    def close(self, writer: Any) -> None:
        """Ends background work, folds the log into the database, and closes the connection of the writer.

        It runs on the writer's thread, after all readers are closed; `writer` is None if it could not be opened.
        """
        ...

"""One SQLite file as a Store uses it: its connections, its checkpointer, its sizes."""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from kernel.core.errors import CatchFaults, Fault
from kernel.engines.sqlite.checkpointer import Checkpointer
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.log_file import log_of, size_of
from kernel.store.context import StoreContext

_FOLD_MILLISECONDS = 500  # how long the end of a server waits for readers; Litestream reads for as long as it runs


class SqliteDatabase:
    """A migrated database file; without `durable` a power cut may lose the last commits, but never damages the file.

    `release` is called once everything is closed.
    """

    # The interpreter's switch interval. Two searches at once hand the interpreter's lock over with every statement.
    # Eight callers' searches against none (ratios of one run): 1.2 to 1.3 at 1,000 memories, 0.92 to 1.10 at 10,000,
    # 0.95 to 0.99 at 100,000, for 0.65 to 0.8 of the processor time up to 10,000. 2 ms gain 1.1 at 1,000 at most.
    read_head_start = 0.005

    def __init__(
        self, file: Path, context: StoreContext, *, durable: bool = True, release: Callable[[], None] | None = None
    ) -> None:
        self._release = release
        self.file = file
        self.context = context
        self._durable = durable
        self._checkpointer: Checkpointer | None = None
        self.after_commit: Callable[[Connection], None] = _nothing_due

    def start(self, catch_faults: CatchFaults) -> None:
        self._checkpointer = Checkpointer(catch_faults, self.writer)
        self.after_commit = self._checkpointer.after_commit
        self._checkpointer.start()

    def reader(self) -> Connection:
        """Opens a connection that cannot write."""
        return self._connect(readonly=True)

    def writer(self) -> Connection:
        return self._connect(readonly=False)

    @property
    def probe(self) -> None:
        """A file answers for itself."""

    def sizes(self) -> tuple[int, int]:
        """Return bytes of the file and of its write-ahead log."""
        return size_of(self.file), size_of(log_of(self.file))

    def close(self, writer: Connection | None) -> None:
        """Stops the checkpointer, folds the whole log into the file, and closes the writer's connection."""
        if self._checkpointer is not None:
            self._checkpointer.stop()
        try:
            if writer is not None:
                _fold_log(writer)
        finally:
            if self._release is not None:
                self._release()

    def _connect(self, *, readonly: bool) -> Connection:
        db = Connection(self.file, self.context, readonly=readonly, durable=self._durable)
        db.load_vectors()
        return db


def _fold_log(writer: Connection) -> None:
    try:
        writer.checkpoint(truncate=True, wait_milliseconds=_FOLD_MILLISECONDS)
    finally:
        writer.close()


class ReadOnlyDatabase(SqliteDatabase):
    """A file that another process writes, without writer and checkpointer; `refusal` says where to write instead."""

    def __init__(self, file: Path, context: StoreContext, refusal: str, release: Callable[[], None]) -> None:
        super().__init__(file, context, release=release)
        self._refusal = refusal

    def start(self, catch_faults: CatchFaults) -> None:
        """Starts nothing."""

    def writer(self) -> NoReturn:
        """Raises Fault("disabled")."""
        raise Fault("disabled", self._refusal)


def _nothing_due(_writer: Connection) -> None:
    """Before the checkpointer is started."""

"""One SQLite file as a Store uses it: its connections, its checkpointer, its sizes."""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from kernel.core.errors import CatchFaults, Fault
from kernel.engines.sqlite.checkpointer import Checkpointer, begin_threads
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.log_file import log_of, size_of
from kernel.store.context import StoreContext

_FOLD_MILLISECONDS = 500  # how long the end of a server waits for readers; Litestream reads for as long as it runs


class SqliteDatabase:
    """A migrated database file; without `durable` a power cut may lose the last commits, but never damages the file.

    `release` is called once everything is closed. Readers map a file of at least `mapped_from` bytes into memory.
    """

    # Two searches at once hand the interpreter's lock over with every statement.
    # Eight callers' searches against none (ratios of one run): 1.2 to 1.3 at 1,000 memories, 0.92 to 1.10 at 10,000,
    # 0.95 to 0.99 at 100,000, for 0.65 to 0.8 of the processor time up to 10,000. 2 ms gain 1.1 at 1,000 at most.
    read_head_start = 0.005

    def __init__(
        self,
        file: Path,
        context: StoreContext,
        *,
        durable: bool = True,
        mapped_from: int = 0,
    ) -> None:
        self.release: Callable[[], None] = _nothing_due
        self.file = file
        self.context = context
        self._durable = durable
        self._mapped_from = mapped_from
        self._checkpointer: Checkpointer | None = None
        self.after_commit: Callable[[Connection], None] = _nothing_due
        self._spare: Connection | None = None

    def start(self, catch_faults: CatchFaults) -> None:
        begin_threads()
        self._checkpointer = Checkpointer(catch_faults, self.writer)
        self.after_commit = self._checkpointer.after_commit

    def reader(self) -> Connection:
        """Opens a connection that cannot write, or returns the spare connection."""
        spare, self._spare = self._spare, None
        return spare or self._connect(readonly=True)

    def keep(self, spare: Connection) -> None:
        self._spare = spare

    def writer(self) -> Connection:
        return self._connect(readonly=False)

    @property
    def probe(self) -> None:
        """A file answers for itself."""

    def sizes(self) -> tuple[int, int]:
        return size_of(self.file), size_of(log_of(self.file))

    def close(self, writer: Connection | None) -> None:
        """Waits for the checkpoint, folds the whole log into the file, and closes the writer's connection."""
        if self._checkpointer is not None:
            self._checkpointer.stop()
        try:
            if writer is None and size_of(log_of(self.file)):  # of a process that was killed
                writer = self.writer()
            if writer is not None:
                _fold_log(writer)
        finally:
            self.release()

    def _connect(self, *, readonly: bool) -> Connection:
        mapped = readonly and size_of(self.file) >= self._mapped_from
        db = Connection(self.file, self.context, readonly=readonly, durable=self._durable, mapped=mapped)
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
        super().__init__(file, context)
        self.release = release
        self._refusal = refusal

    def start(self, catch_faults: CatchFaults) -> None:
        """Starts nothing."""

    def writer(self) -> NoReturn:
        raise Fault("disabled", self._refusal)


def _nothing_due(*_: object) -> None:
    """Does nothing, before the start."""

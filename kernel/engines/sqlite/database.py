"""One SQLite file as a Store uses it: its connections, its checkpointer, its sizes."""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import NoReturn

from kernel.core.errors import CatchFaults, Fault
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.database_file import log_of, size_of
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
    is_remote = False

    def __init__(self, file: Path, context: StoreContext, *, durable: bool = True, mapped_from: int = 0) -> None:
        self.release: Callable[[], None] = _nothing_due
        self.file = file
        self.context = context
        self._durable = durable
        self._mapped_from = mapped_from
        self._checkpointer: Checkpointer | None = None
        self.after_commit: Callable[[Connection], None] = _nothing_due
        self._spare: Connection | None = None
        self._is_moved = False
        self._place: tuple[int, int] | None = None  # device and number of the file, from the start on

    def start(self, catch_faults: CatchFaults) -> None:
        self._place = _place_of(self.file)
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

    def probe(self) -> Mapping[str, str]:
        """Return nothing; raises Fault("storage") if the file was removed or replaced since the start, since all that
        is written to it would be lost.
        """
        is_moved = self._place is not None and _place_of(self.file) not in {self._place, None}
        was_moved, self._is_moved = self._is_moved, is_moved
        if is_moved:
            message = _MOVED.format(self.file.name)
            if not was_moved:
                _log.error("%s", message)
            raise Fault("storage", message)
        return {}

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
        self.probe()
        mapped = readonly and size_of(self.file) >= self._mapped_from
        db = Connection(self.file, self.context, readonly=readonly, durable=self._durable, mapped=mapped)
        db.before_begin = self.probe
        db.load_vectors()
        return db


# 16 MB of log: the length from which the thread copies it; with half of it more pages are copied twice, and a write
# takes 2 % more processor time
PASSIVE_PAGES = 4000
RESTART_PAGES = 16_000  # 64 MB: the length from which the writer waits for readers, so that the log starts over
RESTART_WAIT_MILLISECONDS = 250  # how long the writer waits for them
_THREADS, _THREAD_SECONDS = 2, 10.0  # within which all have begun
_COPIERS = ThreadPoolExecutor(_THREADS, "quipu-checkpoint")
_log = logging.getLogger(__name__)
_MOVED = "{} was removed or replaced while the server runs: nothing is written until it is back or the server restarts."


class Checkpointer:
    """Copies the log into the file on a connection of its own, while the writer goes on.

    The log starts over only when all of it is in the file, so the writer copies the rest afterwards.
    """

    def __init__(self, catch_faults: CatchFaults, connect: Callable[[], Connection]) -> None:
        self._catch_faults = catch_faults
        self._connect = connect
        self._copy: Future[None] | None = None  # under way, or done and not yet finished by the writer
        self._passive_at = PASSIVE_PAGES
        self._restart_at = RESTART_PAGES
        self._last_pages = 0
        self._warned_pages = 0

    def stop(self) -> None:
        if self._copy is not None and not self._copy.cancel():
            self._copy.result()

    def after_commit(self, db: Connection) -> None:
        """Requests a checkpoint that is due, or finishes it; the writer calls it on `db` after each group."""
        pages = db.wal_pages
        if pages < self._last_pages:  # the log has started over
            self._passive_at, self._restart_at, self._warned_pages = PASSIVE_PAGES, RESTART_PAGES, 0
        self._last_pages = pages
        if self._copy is not None and not self._copy.done():
            return
        if pages > self._restart_at:
            # With reads that follow each other without a gap, some reader always needs the log that should start over.
            self._restart_at = 2 * pages  # a long read, such as a backup, delays the writer ever more rarely
            self._checkpoint(pages, partial(db.restart_log, RESTART_WAIT_MILLISECONDS))
        elif self._copy is not None:
            self._checkpoint(pages, db.checkpoint)
        elif pages > self._passive_at:
            self._copy = _COPIERS.submit(self._run)

    def _checkpoint(self, pages: int, copy: Callable[[], bool | None]) -> None:
        self._copy = None
        starts_over = self._catch_faults(copy) is True
        # If a reader needs an old page the log grows on; the next attempt is one stretch later.
        self._passive_at = pages + PASSIVE_PAGES
        if not starts_over:
            self._warn(pages)

    def _warn(self, pages: int) -> None:
        """Warns of a log that does not start over, at twice its limit and at each doubling after that."""
        if pages > 2 * max(RESTART_PAGES, self._warned_pages):
            self._warned_pages = pages
            _log.warning(
                "The write-ahead log has %d pages: a reader that does not end keeps it from starting over", pages
            )

    def _run(self) -> None:
        db = self._catch_faults(self._connect)
        if isinstance(db, Connection):
            with closing(db):
                self._catch_faults(db.checkpoint)


def _place_of(file: Path) -> tuple[int, int] | None:
    """Return the device and number of a file, those of none if it is not there; None if that cannot be known."""
    try:
        status = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return 0, 0
    except OSError:
        return None
    return status.st_dev, status.st_ino


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


@cache
def begin_threads() -> None:
    """Begins all threads, once: there may be no memory for a thread later, and the writer would wait for ever."""
    together = threading.Barrier(_THREADS)
    for _ in range(_THREADS):
        _COPIERS.submit(together.wait, _THREAD_SECONDS)

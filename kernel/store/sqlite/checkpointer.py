"""Fold the write-ahead log back into the file: most of it beside the writer, the rest between two of its groups."""

import logging
import threading
from collections.abc import Callable
from functools import partial

from kernel.errors import Fault
from kernel.store.sqlite.connection import BUSY_MILLISECONDS, CatchFaults, Connection

_PAGES = 2000
_PAGES_HARD = 16_000
_READS_MILLISECONDS = 250
_log = logging.getLogger(__name__)


class Checkpointer:
    """A thread with a connection of its own that copies the log while the writer goes on.

    A log starts over only when all of it is in the file, which the writer, once the most is copied, sees to itself.
    """

    def __init__(self, catch_faults: CatchFaults, connect: Callable[[], Connection]) -> None:
        self._catch_faults = catch_faults
        self._connect = connect
        self._wanted = threading.Event()
        self._stopping = False
        self._copying = False
        self._copied = False
        self._due = _PAGES
        self._hard = _PAGES_HARD
        self._seen = 0
        self._told = 0
        self._thread = threading.Thread(target=self._run, name="quipu-checkpoint", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, after the copying it is at."""
        self._stopping = True
        self._wanted.set()
        self._thread.join()

    def after(self, db: Connection) -> None:
        """What the writer does after each group on `db`: asks for a copying that is due, or finishes one."""
        pages = db.wal_pages
        if pages < self._seen:
            self._due, self._hard, self._told = _PAGES, _PAGES_HARD, 0
        self._seen = pages
        if self._copying:
            return
        if pages > self._hard:
            # Where reads follow each other without a gap, some of them always need the log that should start over.
            self._hard = 2 * pages  # a read that lasts, such as a backup, is waited for ever more rarely
            self._fold(pages, partial(_start_over, db))
        elif self._copied:
            self._fold(pages, db.checkpoint)
        elif pages > self._due:
            self._copying = True
            self._wanted.set()

    def _fold(self, pages: int, copy: Callable[[], None]) -> None:
        self._copied = False
        self._catch_faults(copy)
        # Where a reader holds on to an old page the log goes on growing, and is folded back a stretch later.
        self._due = pages + _PAGES
        self._tell(pages)

    def _tell(self, pages: int) -> None:
        """Warns of a log that does not start over: when it is twice as long as it may be, and twice that, and so on."""
        if pages > 2 * max(_PAGES_HARD, self._told):
            self._told = pages
            _log.warning(
                "The write-ahead log has %d pages: a reader that does not end keeps it from starting over", pages
            )

    def _run(self) -> None:
        db: Connection | Fault | None = None
        while not self._stopping:
            self._wanted.wait()
            self._wanted.clear()
            if self._stopping:
                break
            if not isinstance(db, Connection):
                db = self._catch_faults(self._connect)
            if isinstance(db, Connection):
                self._catch_faults(db.checkpoint)
            self._copied = True
            self._copying = False
        if isinstance(db, Connection):
            db.close()


def _start_over(db: Connection) -> None:
    """Copies all of the log and has the next commit begin it anew; waits for reads under way, but not for long."""
    db.pragma("busy_timeout", _READS_MILLISECONDS)
    try:
        db.pragma("wal_checkpoint", "restart")
    finally:
        db.pragma("busy_timeout", BUSY_MILLISECONDS)

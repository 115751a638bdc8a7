"""Checkpoints the write-ahead log: mostly on a thread beside the writer, the rest between two groups of the writer."""

import logging
import threading
from collections.abc import Callable
from functools import partial

from kernel.core.errors import CatchFaults, Fault
from kernel.engines.sqlite.connection import Connection

PASSIVE_PAGES = 2000  # 8 MB of log: the length from which the thread copies it
RESTART_PAGES = 16_000  # 64 MB: the length from which the writer waits for readers, so that the log starts over
RESTART_WAIT_MILLISECONDS = 250  # how long the writer waits for them
_log = logging.getLogger(__name__)


class Checkpointer:
    """A thread with its own connection that copies the log into the file while the writer goes on.

    The log starts over only when all of it is in the file, so the writer copies the rest after the thread is done.
    """

    def __init__(self, catch_faults: CatchFaults, connect: Callable[[], Connection]) -> None:
        self._catch_faults = catch_faults
        self._connect = connect
        self._wanted = threading.Event()
        self._stopping = False
        self._copying = False
        self._copied = False
        self._passive_at = PASSIVE_PAGES
        self._restart_at = RESTART_PAGES
        self._last_pages = 0
        self._warned_pages = 0
        self._thread = threading.Thread(target=self._run, name="quipu-checkpoint", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, after the checkpoint it is running."""
        self._stopping = True
        self._wanted.set()
        self._thread.join()

    def after_commit(self, db: Connection) -> None:
        """Requests a checkpoint that is due, or finishes one; the writer calls it on `db` after each group."""
        pages = db.wal_pages
        if pages < self._last_pages:  # the log has started over
            self._passive_at, self._restart_at, self._warned_pages = PASSIVE_PAGES, RESTART_PAGES, 0
        self._last_pages = pages
        if self._copying:
            return
        if pages > self._restart_at:
            # With reads that follow each other without a gap, some reader always needs the log that should start over.
            self._restart_at = 2 * pages  # a long read, such as a backup, delays the writer ever more rarely
            self._checkpoint(pages, partial(db.restart_log, RESTART_WAIT_MILLISECONDS))
        elif self._copied:
            self._checkpoint(pages, db.checkpoint)
        elif pages > self._passive_at:
            self._copying = True
            self._wanted.set()

    def _checkpoint(self, pages: int, copy: Callable[[], None]) -> None:
        self._copied = False
        self._catch_faults(copy)
        # If a reader needs an old page the log grows on; the next attempt is one stretch later.
        self._passive_at = pages + PASSIVE_PAGES
        self._warn(pages)

    def _warn(self, pages: int) -> None:
        """Warns of a log that does not start over, at twice its limit and at each doubling after that."""
        if pages > 2 * max(RESTART_PAGES, self._warned_pages):
            self._warned_pages = pages
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

"""Checkpoints the write-ahead log: mostly on a thread of all files, the rest between two groups of the writer."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import cache, partial

from kernel.core.errors import CatchFaults
from kernel.engines.sqlite.connection import Connection

PASSIVE_PAGES = 2000  # 8 MB of log: the length from which the thread copies it
RESTART_PAGES = 16_000  # 64 MB: the length from which the writer waits for readers, so that the log starts over
RESTART_WAIT_MILLISECONDS = 250  # how long the writer waits for them
_THREADS, _THREAD_SECONDS = 2, 10.0  # within which all have begun
_COPIERS = ThreadPoolExecutor(_THREADS, "quipu-checkpoint")
_log = logging.getLogger(__name__)


@cache
def begin_threads() -> None:
    """Begins all threads, once: there may be no memory for a thread later, and the writer would wait for ever."""
    together = threading.Barrier(_THREADS)
    for _ in range(_THREADS):
        _COPIERS.submit(together.wait, _THREAD_SECONDS)


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

    def _checkpoint(self, pages: int, copy: Callable[[], None]) -> None:
        self._copy = None
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
        db = self._catch_faults(self._connect)
        if isinstance(db, Connection):
            with closing(db):
                self._catch_faults(db.checkpoint)

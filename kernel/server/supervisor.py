"""The parent of several workers: it forks them, replaces those that die, and passes signals on."""

import gc
import logging
import mmap
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kernel.core.data_dir import make_private
from kernel.server.process import stop_signals
from kernel.server.worker import NOT_SERVING, Channel, Shared, Worker, end_with_parent, shared_bytes

_KILL_SECONDS = 4.8  # for workers to end: they give themselves a little less
_RESTART_SECONDS = 1.0  # between two starts of one worker, so that a worker that cannot start does not take a core
_log = logging.getLogger("quipu")


class _Running(NamedTuple):
    number: int
    since: float


class Supervisor:
    """The parent: it opens no store and starts no thread, so a fork of it is a fresh process."""

    def __init__(self, count: int, data: Path, sockets: Sequence[socket.socket]) -> None:
        make_private(data)
        self._count = count
        self._sockets = sockets
        self._shared = Shared(
            [Channel(*socket.socketpair(type=socket.SOCK_DGRAM)) for _ in range(count)],
            tempfile.TemporaryFile(dir=data),  # noqa: SIM115  # it has no name, and lives as long as the workers
            [(tempfile.TemporaryFile(dir=data), tempfile.TemporaryFile(dir=data)) for _ in range(count)],  # noqa: SIM115
            mmap.mmap(-1, shared_bytes(count)),
            os.urandom(16),
            os.getpid(),
        )
        for number in range(count):
            self._shared.set_connections(number, NOT_SERVING)
        self._running: dict[int, _Running] = {}
        self._stopping = False

    def run(self) -> Worker | int:
        """Returns in each worker, and in the parent with the exit status when all have ended."""
        gc.freeze()  # present objects stay, and their pages stay shared
        for number in stop_signals():
            signal.signal(number, self._pass_on)
        read_end, opening = os.pipe()
        if worker := self._fork(0, opening):
            os.close(read_end)
            return worker
        os.close(opening)
        whole = bool(os.read(read_end, 1))
        os.close(read_end)
        for number in range(1, self._count if whole else 1):
            if worker := self._fork(number):
                return worker
        return self._replace(whole=whole)

    def _replace(self, *, whole: bool) -> Worker | int:
        """Replaces workers that die, unless the first has not even opened the store."""
        status = 0
        while self._running:
            pid, ended = os.waitpid(-1, 0)
            child = self._running.pop(pid, None)
            if child is None:  # the first process of a container inherits those that others leave
                continue
            self._shared.set_connections(child.number, NOT_SERVING)
            code = os.waitstatus_to_exitcode(ended)
            if self._stopping or not whole:
                status = max(status, min(abs(code), 1))
                continue
            _log.warning("worker %d has ended with status %d; another takes its place", child.number, code)
            time.sleep(max(0.0, child.since + _RESTART_SECONDS - time.monotonic()))
            if worker := self._fork(child.number):
                return worker
        return status

    def _fork(self, number: int, opened: int = -1) -> Worker | None:
        """Return the worker in its own process, None in the parent."""
        assert sys.platform != "win32"
        sys.stdout.flush()
        sys.stderr.flush()
        # Signals that come while there are no handlers are kept.
        signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals())
        if not self._stopping:
            pid = os.fork()
            if not pid:
                end_with_parent()
                return Worker(number, self._shared, opened)
            self._running[pid] = _Running(number, time.monotonic())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals())
        return None

    def _pass_on(self, number: int, _frame: object) -> None:
        """Ends: no connection waits for a parent that takes none, and no worker outlives its grace."""
        assert sys.platform != "win32"
        if not self._stopping:
            signal.signal(signal.SIGALRM, self._kill)
            signal.setitimer(signal.ITIMER_REAL, _KILL_SECONDS)
        self._stopping = True
        for sock in self._sockets:
            sock.close()
        for pid in self._running:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _kill(self, _number: int, _frame: object) -> None:
        """Kills the workers that have not ended, such as a worker whose interpreter is locked."""
        assert sys.platform != "win32"
        for pid in self._running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

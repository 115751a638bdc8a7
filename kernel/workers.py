"""Several processes that serve one store: a parent that forks them and replaces what dies, and what they share."""

import gc
import logging
import mmap
import os
import signal
import socket
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO, NamedTuple

from kernel.data_dir import make_private
from kernel.errors import Fault
from kernel.security.shared_buckets import BYTES, SharedBuckets

if sys.platform != "win32":
    import fcntl

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_RESTART_SECONDS = 1.0  # between two starts of one worker, so that one that cannot start does not take a core
_ANSWER_SECONDS = 2.0  # a worker that is being replaced answers its siblings when it is open
_BUCKETS = 1 << 32  # the byte whose lock protects the buckets; those below are the digests of tenants
_PIECE_BYTES = 65536
_log = logging.getLogger("quipu")


class _Channel(NamedTuple):
    """Questions to one worker: whoever sends one passes the socket for the answer with it."""

    questions: socket.socket
    asked: socket.socket


class Worker:
    """This process as one of several; the `first` has the pipe `opened`, for which the others wait."""

    def __init__(
        self,
        number: int,
        channels: Sequence[_Channel],
        locks: IO[bytes],
        memory: mmap.mmap,
        key: bytes,
        opened: int = -1,
    ) -> None:
        self.number = number
        self.first = opened >= 0
        self.buckets = SharedBuckets(memory, self._lock_of_buckets, key)
        self._channels = channels
        self._locks = locks
        self._parent = os.getppid()
        self._opened = opened

    def tell_opened(self) -> None:
        """Tells the parent that the store is open."""
        if self._opened >= 0:
            os.write(self._opened, b"\n")
            os.close(self._opened)
            self._opened = -1

    def take_signals(self) -> None:
        """Lets the signals in that were held back until there is somebody who handles them."""
        assert sys.platform != "win32"
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def is_orphan(self) -> bool:
        """Whether the parent is gone."""
        return os.getppid() != self._parent

    def take_upkeep(self, tenant: str) -> bool:
        """Whether this worker is the one that takes care of the store of a tenant, until `leave_upkeep` or its end."""
        try:
            self._lock(zlib.crc32(tenant.encode()), wait=False)
        except OSError:
            return False
        return True

    def leave_upkeep(self, tenant: str) -> None:
        """Lets another worker take care of that store."""
        self._unlock(zlib.crc32(tenant.encode()))

    def ask_siblings(self) -> list[bytes]:
        """What each other worker answers; raises Fault("busy") where one does not. It blocks for seconds at most."""
        others = [channel for number, channel in enumerate(self._channels) if number != self.number]
        try:
            answers = [_ask(channel.questions) for channel in others]
            return [_all_of(answer) for answer in answers]
        except OSError:
            raise Fault("busy", "A worker does not answer, try again.") from None

    def answer_siblings(
        self, add_reader: Callable[[int, Callable[[], None]], object], text: Callable[[], bytes]
    ) -> None:
        """Answers each question of a sibling with `text` from now on; called and run on the event loop."""
        asked = self._channels[self.number].asked
        add_reader(asked.fileno(), lambda: _answer(asked, text))

    @contextmanager
    def _lock_of_buckets(self) -> Generator[None]:
        self._lock(_BUCKETS, wait=True)
        try:
            yield
        finally:
            self._unlock(_BUCKETS)

    # Record locks belong to a process and end with it, so a worker that is killed holds nothing up.

    def _lock(self, byte: int, *, wait: bool) -> None:
        assert sys.platform != "win32"
        fcntl.lockf(self._locks.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, byte)

    def _unlock(self, byte: int) -> None:
        assert sys.platform != "win32"
        fcntl.lockf(self._locks.fileno(), fcntl.LOCK_UN, 1, byte)


class _Running(NamedTuple):
    number: int
    since: float


class Supervisor:
    """The parent: it binds nothing and opens no store, so a fork of it is a fresh process."""

    def __init__(self, count: int, data: Path, sockets: Sequence[socket.socket]) -> None:
        assert sys.platform != "win32"
        make_private(data)
        self._count = count
        self._sockets = sockets
        self._file = tempfile.TemporaryFile(dir=data)  # noqa: SIM115  # it has no name, and is kept for its locks
        self._memory = mmap.mmap(-1, BYTES)
        self._key = os.urandom(16)
        self._channels = [_Channel(*socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)) for _ in range(count)]
        self._running: dict[int, _Running] = {}
        self._stopping = False

    def run(self) -> Worker | int:
        """Returns in each worker, and in the parent with the exit status when all have ended."""
        gc.freeze()  # what is there stays, and its pages stay shared
        for number in _SIGNALS:
            signal.signal(number, self._pass_on)
        opened, tell = os.pipe()
        if worker := self._fork(0, tell):
            os.close(opened)
            return worker
        os.close(tell)
        whole = bool(os.read(opened, 1))
        os.close(opened)
        for number in range(1, self._count if whole else 1):
            if worker := self._fork(number):
                return worker
        return self._replace(whole=whole)

    def _replace(self, *, whole: bool) -> Worker | int:
        """Replaces workers that die, unless the first one has not even opened the store."""
        status = 0
        while self._running:
            pid, ended = os.waitpid(-1, 0)
            found = self._running.pop(pid, None)
            if found is None:  # the first process of a container inherits those that others leave
                continue
            code = os.waitstatus_to_exitcode(ended)
            if self._stopping or not whole:
                status = max(status, min(abs(code), 1))
                continue
            _log.warning("worker %d has ended with status %d; another takes its place", found.number, code)
            time.sleep(max(0.0, found.since + _RESTART_SECONDS - time.monotonic()))
            if worker := self._fork(found.number):
                return worker
        return status

    def _fork(self, number: int, opened: int = -1) -> Worker | None:
        """The worker in its own process, None in the parent."""
        assert sys.platform != "win32"
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # what comes while there are no handlers is kept
        if not self._stopping:
            pid = os.fork()
            if not pid:
                return Worker(number, self._channels, self._file, self._memory, self._key, opened)
            self._running[pid] = _Running(number, time.monotonic())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return None

    def _pass_on(self, number: int, _frame: object) -> None:
        """Ends: no connection waits for a parent that takes none."""
        self._stopping = True
        for one in self._sockets:
            one.close()
        for pid in self._running:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _ask(questions: socket.socket) -> socket.socket:
    assert sys.platform != "win32"
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(questions, [b"?"], [theirs.fileno()], socket.MSG_DONTWAIT)
    ours.settimeout(_ANSWER_SECONDS)
    return ours


def _all_of(answer: socket.socket) -> bytes:
    with answer:
        pieces = list(iter(lambda: answer.recv(_PIECE_BYTES), b""))
    if not pieces:
        raise ConnectionError("it has ended")
    return b"".join(pieces)


def _answer(asked: socket.socket, text: Callable[[], bytes]) -> None:
    assert sys.platform != "win32"
    try:
        _, descriptors, _, _ = socket.recv_fds(asked, 1, 1, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return
    answer = text()
    for descriptor in descriptors:
        Thread(target=_send, args=(socket.socket(fileno=descriptor), answer), name="quipu-answer", daemon=True).start()


def _send(to: socket.socket, answer: bytes) -> None:
    with to, suppress(OSError):  # who asked has given up
        to.settimeout(_ANSWER_SECONDS)
        to.sendall(answer)

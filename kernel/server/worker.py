"""One of several processes that serve a store: the state it shares, and its accepting of connections."""

import hashlib
import logging
import mmap
import os
import signal
import socket
import struct
import sys
import time
import zlib
from asyncio import AbstractEventLoop
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import IO, NamedTuple

from kernel.core.errors import Fault
from kernel.security import login_codes, rate_limit
from kernel.security.login_codes import LoginCodes
from kernel.security.rate_limit import SharedBuckets
from kernel.server.process import stop_signals

if sys.platform != "win32":
    import fcntl

_ANSWER_SECONDS = 5.0  # a worker that has died is replaced within two
_BUCKETS, _CODES = 1 << 32, (1 << 32) + 1  # bytes whose locks protect them; those below are the digests of tenants
_AFTER_BUCKETS = rate_limit.BYTES
_COUNTS = _AFTER_BUCKETS + login_codes.BYTES
_PAUSE_SECONDS = 1.0  # without accepting if that fails, as asyncio does
_COUNT = struct.Struct("=q")  # the connections of a worker
_KEPT = struct.Struct("=QQI")  # when a worker kept its counters, their bytes and their digest
NOT_SERVING = 1 << 62
_CONNECTION, _QUESTION = b"c", b"?"
_PR_SET_PDEATHSIG = 1
_log = logging.getLogger("quipu")


def end_with_parent() -> None:
    """Have the kernel send SIGTERM to this process when its parent has died, however it did; on Linux only."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def shared_bytes(workers: int) -> int:
    return _COUNTS + workers * _COUNT.size


class Channel(NamedTuple):
    """To one worker from the others: connections to serve, and questions with the socket that the answer closes."""

    sent: socket.socket
    received: socket.socket


class Shared(NamedTuple):
    """The state that the parent makes for all workers: `locks` is a file of which only the locks are used, `kept` has
    two files for each worker, which outlive it: one is whole if it is killed while it writes the other.
    """

    channels: Sequence[Channel]
    locks: IO[bytes]
    kept: Sequence[tuple[IO[bytes], IO[bytes]]]
    memory: mmap.mmap
    key: bytes
    parent: int

    def connections(self, number: int) -> int:
        return _COUNT.unpack_from(self.memory, _COUNTS + number * _COUNT.size)[0]

    def set_connections(self, number: int, count: int) -> None:
        """Publishes how many connections a worker has, NOT_SERVING if it takes none."""
        _COUNT.pack_into(self.memory, _COUNTS + number * _COUNT.size, count)


class Worker:
    """This process as one of several; the `first` has the pipe `opened`, for which the others wait."""

    def __init__(self, number: int, shared: Shared, opened: int = -1) -> None:
        self.number = number
        self.first = opened >= 0
        self.buckets = SharedBuckets(shared.memory, partial(self._holding, _BUCKETS), shared.key)
        self.codes = LoginCodes(shared.memory, _AFTER_BUCKETS, partial(self._holding, _CODES))
        self.secret = hashlib.sha256(b"console" + shared.key).digest()  # signs sessions that every worker must accept
        self._shared = shared
        self._serve: Callable[[socket.socket], object] = socket.socket.close
        self.text: Callable[[], bytes] = bytes  # the counters that siblings ask for
        self._opened = opened

    def report_opened(self) -> None:
        if self._opened >= 0:
            with suppress(BrokenPipeError):  # the parent has ended
                os.write(self._opened, b"\n")
            os.close(self._opened)
            self._opened = -1

    def take_signals(self) -> None:
        """Unblocks the signals, which were blocked until their handlers are installed."""
        assert sys.platform != "win32"
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals())

    def is_orphan(self) -> bool:
        return os.getppid() != self._shared.parent

    def take_upkeep(self, tenant: str) -> bool:
        """Return whether this worker takes care of the store of a tenant, until `leave_upkeep` or its
        end.
        """
        try:
            self._lock(zlib.crc32(tenant.encode()), wait=False)
        except OSError:
            return False
        return True

    def leave_upkeep(self, tenant: str) -> None:
        self._unlock(zlib.crc32(tenant.encode()))

    def keep(self, text: bytes) -> None:
        assert sys.platform != "win32"
        file = min(self._shared.kept[self.number], key=_kept_in)
        with suppress(OSError):  # a full disk, for which no worker ends
            os.pwrite(file.fileno(), _KEPT.pack(time.monotonic_ns(), len(text), zlib.crc32(text)) + text, 0)

    def kept(self) -> bytes:
        """Return the counters that the worker before kept; empty for the first."""
        return self._kept_by(self.number)

    def _kept_by(self, number: int) -> bytes:
        return max(map(_kept_in, self._shared.kept[number]))[1]

    def ask_siblings(self) -> list[bytes]:
        """Return the answers of the other workers that have opened their store; blocks for seconds at most.

        Raises Fault("busy") if any does not answer.
        """
        siblings = [number for number in range(len(self._shared.channels)) if number != self.number]
        try:
            with ExitStack() as stack:
                answers = [stack.enter_context(_ask(self._shared.channels[number].sent)) for number in siblings]
                for answer in answers:
                    answer.recv(1)  # the end, also of a worker that dies
        except OSError:
            raise Fault("busy", "A worker does not answer, try again.") from None
        return [text for number in siblings if (text := self._kept_by(number))]

    def accept(
        self, loop: AbstractEventLoop, sockets: Sequence[socket.socket], serve: Callable[[socket.socket], object]
    ) -> None:
        """Serve accepted connections and those that siblings hand over, on the event loop.

        Processes that wait for one socket are woken in any order, and one gets nearly all; so each connection goes to
        the worker that has the fewest.
        """
        self._shared.set_connections(self.number, 0)
        self._serve = serve
        loop.add_reader(self._shared.channels[self.number].received.fileno(), self._receive)
        for sock in sockets:
            sock.setblocking(False)
            loop.add_reader(sock.fileno(), self._accept_one, loop, sock)

    def stop_accepting(self, loop: AbstractEventLoop, sockets: Sequence[socket.socket]) -> None:
        self._shared.set_connections(self.number, NOT_SERVING)
        for sock in sockets:
            loop.remove_reader(sock.fileno())
        self._receive()

    def count(self, connections: int) -> None:
        self._shared.set_connections(self.number, connections)

    def _accept_one(self, loop: AbstractEventLoop, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            _log.error("cannot accept a connection: %s", error.strerror)
            loop.remove_reader(listener.fileno())
            loop.call_later(_PAUSE_SECONDS, loop.add_reader, listener.fileno(), self._accept_one, loop, listener)
            return
        counts = [self._shared.connections(number) for number in range(len(self._shared.channels))]
        target = min(range(len(counts)), key=lambda number: (counts[number], number != self.number))
        self._shared.set_connections(target, counts[target] + 1)
        if target == self.number or not self._handed_over(sock, target):
            self._serve(sock)

    def _handed_over(self, sock: socket.socket, to: int) -> bool:
        assert sys.platform != "win32"
        try:
            descriptors = [sock.fileno()]
            socket.send_fds(self._shared.channels[to].sent, [_CONNECTION], descriptors, socket.MSG_DONTWAIT)
        except OSError:  # it has not taken those before
            return False
        sock.close()
        return True

    def _receive(self) -> None:
        assert sys.platform != "win32"
        with suppress(BlockingIOError):
            while True:
                inbox = self._shared.channels[self.number].received
                kind, descriptors, _, _ = socket.recv_fds(inbox, 1, 1, socket.MSG_DONTWAIT)
                for descriptor in descriptors:
                    sock = socket.socket(fileno=descriptor)
                    self._serve(sock) if kind == _CONNECTION else self._answer(sock)

    def _answer(self, to: socket.socket) -> None:
        """Keep the answer: the successor of this worker begins with no less than others have seen."""
        with to:
            self.keep(self.text())

    @contextmanager
    def _holding(self, byte: int) -> Generator[None]:
        self._lock(byte, wait=True)
        try:
            yield
        finally:
            self._unlock(byte)

    # Record locks belong to a process and end with it, so a worker that is killed holds nothing up.

    def _lock(self, byte: int, *, wait: bool) -> None:
        assert sys.platform != "win32"
        fcntl.lockf(self._shared.locks.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, byte)

    def _unlock(self, byte: int) -> None:
        assert sys.platform != "win32"
        fcntl.lockf(self._shared.locks.fileno(), fcntl.LOCK_UN, 1, byte)


def _ask(questions: socket.socket) -> socket.socket:
    assert sys.platform != "win32"
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(questions, [_QUESTION], [theirs.fileno()], socket.MSG_DONTWAIT)
    ours.settimeout(_ANSWER_SECONDS)
    return ours


def _kept_in(file: IO[bytes]) -> tuple[int, bytes]:
    """Return when counters were kept in a file, and their text; 0 for none, or if their writing was cut off."""
    assert sys.platform != "win32"
    head = os.pread(file.fileno(), _KEPT.size, 0)
    if len(head) < _KEPT.size:
        return 0, b""
    at, size, digest = _KEPT.unpack(head)
    text = os.pread(file.fileno(), size, _KEPT.size)
    return (at, text) if zlib.crc32(text) == digest else (0, b"")

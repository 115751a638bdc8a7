"""Newline-framed messages over two descriptors, separated from all else that the process reads and prints."""

import asyncio
import os
import select
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

# The capacity of a pipe on Linux.
_READ_BYTES = 65536
# A pipe that select reports as writable accepts this many bytes without blocking (pipe(7)).
_ATOMIC_WRITE_BYTES = getattr(select, "PIPE_BUF", 0)


def take_over(input_fd: int, output_fd: int) -> tuple[int, int]:
    """Private copies of both descriptors; descriptor 0 then reads from null, and 1 writes to stderr.

    Neither a stray print nor a child process can then write to the client or read from it. This is not undone: text in
    Python's buffer of stdout would reach the client at exit.
    """
    source, sink = os.dup(input_fd), os.dup(output_fd)
    if input_fd == 0:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
    if output_fd == 1:
        os.dup2(2, 1)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(source, os.O_BINARY)
        msvcrt.setmode(sink, os.O_BINARY)
    return source, sink


class StdinReader:
    """Passes on the lines of a descriptor, stripped and without blank ones; None for a line over the limit."""

    def __init__(self, fd: int, limit: int, take: Callable[[bytes | None], None]) -> None:
        self._fd = fd
        self._limit = limit
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._polled = False
        self._pending = bytearray()
        self._dropping = False

    async def run(self) -> None:
        """Passes on every line until the end of input or `stop`."""
        try:
            self._loop.add_reader(self._fd, self._read)
            self._polled = True
        except (NotImplementedError, OSError):  # a plain file cannot be polled, and on Windows nothing can
            threading.Thread(target=self._read_all, name="quipu-stdin", daemon=True).start()
        await self._ended.wait()

    def stop(self) -> None:
        """Ends the run; text after the last line end counts as a line."""
        if self._polled:
            self._loop.remove_reader(self._fd)
            self._polled = False
        if not self._ended.is_set():
            self._ended.set()
            self._line(b"")

    def _read(self) -> None:
        self._feed(_read(self._fd))

    def _read_all(self) -> None:
        while chunk := _read(self._fd):
            self._loop.call_soon_threadsafe(self._feed, chunk)
        self._loop.call_soon_threadsafe(self._feed, b"")

    def _feed(self, chunk: bytes) -> None:
        if not chunk or self._ended.is_set():
            self.stop()
            return
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._line(end)
        self._pending += rest
        if len(self._pending) > self._limit:
            self._pending.clear()
            self._dropping = True

    def _line(self, end: bytes) -> None:
        whole = bytes(self._pending) + end if self._pending else end
        self._pending.clear()
        line = None if self._dropping or len(whole) > self._limit else whole.strip()
        self._dropping = False
        if line != b"":
            self._take(line)


class StdoutWriter:
    """Writes messages in order without blocking the event loop: a thread writes those the pipe may not accept."""

    def __init__(self, fd: int, on_lost: Callable[[], object]) -> None:
        self._fd = fd
        self._on_lost = on_lost
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._queued = 0
        self._written = 0
        self._thread: threading.Thread | None = None

    def write(self, message: bytes) -> None:
        """Writes one message and its line end."""
        data = message + b"\n"
        if self._queued == self._written and len(data) <= _ATOMIC_WRITE_BYTES and _writable(self._fd):
            self._put(data)
            return
        self._queued += 1
        self._waiting.put(data)
        if self._thread is None:
            self._thread = threading.Thread(target=self._drain, name="quipu-stdout", daemon=True)
            self._thread.start()

    def close(self, seconds: float) -> None:
        """Waits up to `seconds` for queued messages."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(seconds)

    def _drain(self) -> None:
        while (data := self._waiting.get()) is not None:
            self._put(data)
            self._written += 1

    def _put(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError:
            self._on_lost()


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _READ_BYTES)
    except OSError:
        return b""


def _writable(fd: int) -> bool:
    return bool(select.select((), (fd,), (), 0)[1])

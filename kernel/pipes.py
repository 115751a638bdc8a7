"""The two ends of a pipe as newline-framed messages, kept clear of whatever else a process reads and prints."""

import asyncio
import os
import select
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from queue import SimpleQueue

_CHUNK = 65536
# What select calls writable takes this much without blocking.
_AT_ONCE = getattr(select, "PIPE_BUF", 0)


def take_over(input_fd: int, output_fd: int) -> tuple[int, int]:
    """Private copies of both descriptors; the standard ones then lead to nothing and to stderr.

    So neither a stray print nor a child process can speak on the wire or read from it. It is not undone: text that
    Python still holds for stdout at exit would land on the wire.
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


class Source:
    """Lines from a descriptor, without their ends and without blank ones; one past the limit comes as None."""

    def __init__(self, fd: int, limit: int) -> None:
        self._fd = fd
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._chunks: deque[bytes] = deque()
        self._ready = asyncio.Event()
        self._polled = False

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Every line until the other side closes or `stop` is called."""
        self._start()
        pending, dropping = bytearray(), False
        while chunk := await self._next():
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                pending += end
                line = None if dropping or len(pending) > self._limit else bytes(pending).strip()
                if line != b"":
                    yield line
                pending.clear()
                dropping = False
            pending += rest
            if len(pending) > self._limit:
                pending.clear()
                dropping = True
        if pending.strip():
            yield bytes(pending).strip()

    def stop(self) -> None:
        """Ends the lines after those already read."""
        if self._polled:
            self._loop.remove_reader(self._fd)
            self._polled = False
        self._push(b"")

    def _start(self) -> None:
        try:
            self._loop.add_reader(self._fd, self._read)
            self._polled = True
        except (NotImplementedError, OSError):  # a plain file cannot be polled, and on Windows nothing can
            threading.Thread(target=self._read_all, name="quipu-stdin", daemon=True).start()

    def _read(self) -> None:
        chunk = _read(self._fd)
        if chunk:
            self._push(chunk)
        else:
            self.stop()

    def _read_all(self) -> None:
        while chunk := _read(self._fd):
            self._loop.call_soon_threadsafe(self._push, chunk)
        self._loop.call_soon_threadsafe(self._push, b"")

    def _push(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._ready.set()

    async def _next(self) -> bytes:
        while not self._chunks:
            self._ready.clear()
            await self._ready.wait()
        return self._chunks.popleft()


class Sink:
    """Writes whole messages in order without blocking: what may not fit the pipe at once goes by a thread."""

    def __init__(self, fd: int, lost: Callable[[], object]) -> None:
        self._fd = fd
        self._lost = lost
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._queued = 0
        self._written = 0
        self._thread: threading.Thread | None = None

    def write(self, message: bytes) -> None:
        """Sends one message and its line end."""
        data = message + b"\n"
        if self._queued == self._written and len(data) <= _AT_ONCE and _writable(self._fd):
            self._put(data)
            return
        self._queued += 1
        self._waiting.put(data)
        if self._thread is None:
            self._thread = threading.Thread(target=self._drain, name="quipu-stdout", daemon=True)
            self._thread.start()

    def close(self, seconds: float) -> None:
        """Waits that long for what is still on its way."""
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
            self._lost()


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK)
    except OSError:
        return b""


def _writable(fd: int) -> bool:
    return bool(select.select((), (fd,), (), 0)[1])

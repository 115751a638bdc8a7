"""MCP over standard input and output: one JSON message per line, both eras in one process."""

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import cast

import msgspec
from msgspec import UNSET

from kernel.calls.dispatch import Dispatch, Pending, catch_faults
from kernel.core.errors import NO_MEMORY
from kernel.core.limits import Limits
from kernel.core.memory import until_memory, wait_for_memory
from kernel.mcp import messages
from kernel.mcp.messages import ID_ROOM, Inbound, ProtocolError
from kernel.mcp.server import Response, Service
from kernel.mcp.subscriptions import Subscriptions
from kernel.security.permissions import ANONYMOUS, ANONYMOUS_CALLER, with_client_name

# Calls under way at the end of input get this long; clients kill a server that takes longer (the SDKs wait 2 s).
DRAIN_SECONDS = 1.0
_MAX_LISTENING = 64  # subscriptions of one client


class _Cancelled(msgspec.Struct):
    requestId: int | str | None = None


# The capacity of a pipe on Linux.
_READ_BYTES = 65536
# A pipe that select reports as writable accepts this many bytes without blocking (pipe(7)).
_ATOMIC_WRITE_BYTES = getattr(select, "PIPE_BUF", 0)


class StdinReader:
    """Passes on the lines of a descriptor, stripped and without blank lines, and whether they are whole: of a line over
    the limit there are only the beginning and the end.
    """

    def __init__(self, fd: int, limit: int, take: Callable[[bytes, bool], None]) -> None:
        self._fd = fd
        self._limit = limit
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._polled = False
        self._pending = bytearray()
        self._beginning = b""

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
        try:
            chunk = _read(self._fd)
        except MemoryError:  # it is asked for again
            wait_for_memory()
        else:
            self._feed(chunk)

    def _read_all(self) -> None:
        chunk = b"\n"
        while chunk:
            try:
                chunk = _read(self._fd)
            except MemoryError:
                wait_for_memory()
            else:
                until_memory(self._loop.call_soon_threadsafe, self._feed, chunk)

    def _feed(self, chunk: bytes) -> None:
        if not chunk or self._ended.is_set():
            self.stop()
            return
        parts: list[bytes] = []
        try:
            until_memory(lambda: parts.extend(chunk.split(b"\n")))
        except MemoryError:  # the lines that it belongs to would have a hole
            self.stop()
            return
        *ends, rest = parts
        for end in ends:
            self._line(end)
        try:
            self._pending += rest
        except MemoryError:
            self._shorten()
            self._beginning = self._beginning or rest[:ID_ROOM]
            self._pending += rest[-ID_ROOM:]
        if len(self._pending) > self._limit:
            self._shorten()

    def _shorten(self) -> None:
        """Drops a line that is too long, but for its beginning and its end."""
        self._beginning = self._beginning or bytes(self._pending[:ID_ROOM])
        del self._pending[:-ID_ROOM]

    def _line(self, end: bytes) -> None:
        try:
            whole = bytes(self._pending) + end if self._pending else end
        except MemoryError:
            self._shorten()
            whole = bytes(self._pending) + end
        self._pending.clear()
        beginning, self._beginning = self._beginning, b""
        if beginning or len(whole) > self._limit:
            self._take((beginning or whole[:ID_ROOM]) + whole[-ID_ROOM:], False)
        elif line := whole.strip():
            self._take(line, True)


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
        data = message + b"\n"
        if self._queued == self._written and len(data) <= _ATOMIC_WRITE_BYTES:
            _, writable, _ = select.select((), (self._fd,), (), 0)
            if writable:
                self._put(data)
                return
        self._waiting.put(data)
        self._queued += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._drain, name="quipu-stdout", daemon=True)
            self._thread.start()

    def close(self, seconds: float) -> None:
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(seconds)

    def _drain(self) -> None:
        while (data := self._waiting.get()) is not None:
            self._put(data)
            self._written += 1

    def _put(self, data: bytes) -> None:
        at, view = 0, memoryview(data)
        while at < len(data):
            try:
                at += os.write(self._fd, view[at:])
            except MemoryError:
                wait_for_memory()
            except OSError:
                self._on_lost()
                return


def serve(
    service: Service, dispatch: Dispatch, input_fd: int = 0, output_fd: int = 1, limits: Limits = Limits()
) -> None:
    """Serves one client until the end of input or SIGTERM, then finishes calls for at most a second.

    The client started the process, so it has full access.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(converse(service, dispatch, *take_over(input_fd, output_fd), limits))
        while True:
            try:
                return loop.run_until_complete(task)
            except MemoryError:  # of the loop itself, which goes on from here
                if task.done():
                    raise
                wait_for_memory()


async def converse(
    service: Service, dispatch: Dispatch, input_fd: int, output_fd: int, limits: Limits = Limits()
) -> None:
    """`serve` on descriptors that the caller has taken over, inside a running loop."""
    loop = asyncio.get_running_loop()
    session = _Session(
        service, dispatch, StdoutWriter(output_fd, lambda: loop.call_soon_threadsafe(reader.stop)), limits
    )
    reader = StdinReader(input_fd, limits.body, session.take)
    # Only the main thread of a POSIX process can handle signals; elsewhere the end of input is the only end.
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, reader.stop)
    await reader.run()
    await session.close()


class _Session:
    """One client: its name, its log level, its subscriptions, and its calls under way."""

    def __init__(self, service: Service, dispatch: Dispatch, writer: StdoutWriter, limits: Limits) -> None:
        self._service = service
        self._dispatch = dispatch
        self._writer = writer
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._calls: dict[int | str, Pending] = {}
        self._idle = asyncio.Event()
        self._actor = ANONYMOUS
        self._level: str | None = messages.LEGACY_LEVEL
        self._subscriptions = Subscriptions(dispatch, service.subscribable, writer.write)
        self._listening: dict[int | str, Subscriptions] = {}

    def take(self, line: bytes, is_whole: bool) -> None:
        """Handles one line; the response is written at once or when its call is done."""
        fault = catch_faults(self._handle, line, is_whole)
        if fault is not None:  # an error of this program, for which no client should wait
            error = ProtocolError(messages.INTERNAL_ERROR, fault.message)
            until_memory(self._writer.write, error.reply(messages.id_of_unreadable(line)))

    def _handle(self, line: bytes, is_whole: bool) -> None:
        id_ = b""
        try:
            if not is_whole:
                raise ProtocolError(messages.INVALID_REQUEST, "Line too long")
            envelope = messages.open_message(line, self._limits)
            if envelope.id is UNSET or envelope.method is UNSET:
                self._on_notification(envelope)
                return
            id_ = messages.encoded_id(envelope.id)
            inbound = messages.over_stdio(envelope, id_, self._actor, self._level, self._service.routes)
            inbound.caller, inbound.dispatch = with_client_name(ANONYMOUS_CALLER, inbound.actor), self._dispatch
            self._note(inbound)
            if self._service.listens(inbound):
                self._listen(envelope.id, inbound)
            else:
                self._submit(envelope.id, inbound)
        except ProtocolError as error:
            self._writer.write(error.reply(id_ or messages.id_of_unreadable(line)))

    async def close(self) -> None:
        """Waits for calls under way, then cancels the rest without a response."""
        await asyncio.sleep(0)  # so that responses that were scheduled are written
        self._idle.clear()
        if self._calls:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), DRAIN_SECONDS)
        for pending in self._calls.values():
            pending.cancel()
        self._calls.clear()
        for subscriptions in (self._subscriptions, *self._listening.values()):
            subscriptions.close()
        self._writer.close(DRAIN_SECONDS)

    def _on_notification(self, envelope: messages.Message) -> None:
        if envelope.method == "notifications/cancelled":
            id_ = _cancelled(envelope.params)
            if id_ is not None and id_ in self._calls:
                self._calls.pop(id_).cancel()
            elif id_ is not None and id_ in self._listening:
                self._listening.pop(id_).close()
        elif envelope.method is UNSET and not (bytes(envelope.result) or bytes(envelope.error)):
            raise ProtocolError(messages.INVALID_REQUEST, "A message is one JSON-RPC request or notification object")

    def _note(self, inbound: Inbound) -> None:
        params = inbound.params
        if isinstance(params, messages.Initialize):
            self._actor = messages.actor_name(params.clientInfo.name)
        elif isinstance(params, messages.SetLevel):
            self._level = params.level
        elif isinstance(params, messages.Subscribe):
            change = self._subscriptions.add if inbound.method == "resources/subscribe" else self._subscriptions.drop
            change(params.uri)

    def _listen(self, key: int | str, inbound: Inbound) -> None:
        self._check_id(key)
        if len(self._listening) >= _MAX_LISTENING:
            raise ProtocolError(messages.INTERNAL_ERROR, f"There are {_MAX_LISTENING} subscriptions, end one first")
        subscribable, write = self._service.subscribable, self._writer.write
        subscriptions = self._listening[key] = Subscriptions(self._dispatch, subscribable, write, id_=inbound.id)
        write(subscriptions.listen(inbound.params))

    def _check_id(self, key: int | str) -> None:
        if key in self._calls or key in self._listening:
            raise ProtocolError(messages.INVALID_REQUEST, "A request with this id is under way")

    def _submit(self, key: int | str, inbound: Inbound) -> None:
        self._check_id(key)
        inbound.emit = self._emit

        def done(response: Response) -> None:
            if self._calls.get(key) is pending:  # else the client cancelled it
                del self._calls[key]
                self._respond(inbound, response)

        pending = self._service.submit(inbound, done)
        if isinstance(pending, Pending):
            self._calls[key] = pending
        else:
            self._loop.call_soon(self._respond, inbound, pending)  # after the messages of the handler on this loop

    def _respond(self, inbound: Inbound, response: Response) -> None:
        try:
            until_memory(self._write_response, inbound, response)
        except MemoryError:  # the answer is too large for what is free
            self._writer.write(ProtocolError(messages.INTERNAL_ERROR, NO_MEMORY).reply(inbound.id))
        if not self._calls:
            self._idle.set()

    def _write_response(self, inbound: Inbound, response: Response) -> None:
        self._writer.write(response.reply(inbound.id) if isinstance(response, ProtocolError) else response)

    def _emit(self, message: bytes) -> None:
        self._loop.call_soon_threadsafe(self._writer.write, message)


def _cancelled(params: msgspec.Raw | messages.Params) -> int | str | None:
    try:
        return msgspec.json.decode(cast("msgspec.Raw", params), type=_Cancelled).requestId
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


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


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _READ_BYTES)
    except OSError:
        return b""

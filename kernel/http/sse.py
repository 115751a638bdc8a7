"""Waiting for an answer over HTTP: cancellation on disconnect, and server-sent events before the answer."""

import asyncio
from collections import deque
from collections.abc import Coroutine

from starlette.types import Receive, Send

from kernel.http.edge import begin_response, left, send_part
from kernel.mcp.messages import ProtocolError

Answering = Coroutine[object, None, bytes]

# Seconds before the client is watched: most answers arrive earlier, and then the second task is saved.
_WATCH_DELAY_SECONDS = 0.05
# Proxies commonly close a response that is silent for 30 to 60 seconds.
PING_SECONDS = 15.0
# A client that does not read loses notifications past this many; the answer itself is never dropped.
_MAX_QUEUED_MESSAGES = 1024
PING = b": ping\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


async def cancel_on_disconnect(answering: Answering, receive: Receive) -> bytes | None:
    """Return the answer, or None if the client disconnects first, which cancels the work."""
    task = asyncio.current_task()
    assert task is not None
    watch = _DisconnectWatch(receive, task)
    start = asyncio.get_running_loop().call_later(_WATCH_DELAY_SECONDS, watch.start)
    try:
        return await answering
    except asyncio.CancelledError:
        if not watch.disconnected:
            raise
        task.uncancel()
        return None
    finally:
        start.cancel()
        watch.stop()


class Stream:
    """One response that is JSON unless a notification precedes the answer; `emit` may be called from any thread."""

    def __init__(self, send: Send, id_: bytes) -> None:
        self._send = send
        self._id = id_
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._messages: deque[bytes] = deque()
        self._open = True
        self._started = False

    def emit(self, message: bytes) -> None:
        """Queues a notification; drops it after the answer, or while the client does not read."""
        if self._open and len(self._messages) < _MAX_QUEUED_MESSAGES:
            self._messages.append(message)
            self._loop.call_soon_threadsafe(self._wake.set)

    async def run(self, answering: Answering, receive: Receive | None) -> bytes | None:
        """Return the answer, or None if it was sent as the last event or the client left; no `receive`, no watch."""
        task = asyncio.ensure_future(answering)
        task.add_done_callback(lambda _: self._wake.set())
        watch = _DisconnectWatch(receive, task)
        watch.start()
        try:
            while self._messages or not task.done():
                await self._step()
            return None if watch.disconnected else await self._finish(task)
        finally:
            self._open = False
            task.cancel()
            watch.stop()

    async def _step(self) -> None:
        try:
            async with asyncio.timeout(PING_SECONDS if self._started else None):
                await self._wake.wait()
        except TimeoutError:
            await send_part(self._send, PING)
            return
        self._wake.clear()
        while self._messages:
            if not self._started:
                self._started = True
                await begin_response(self._send, 200, HEADERS)
            await send_part(self._send, event(self._messages.popleft()))

    async def _finish(self, task: asyncio.Task[bytes]) -> bytes | None:
        if not self._started:
            return task.result()
        try:
            last = task.result()
        except ProtocolError as error:
            last = error.reply(self._id)
        await send_part(self._send, event(last), more=False)
        return None


class _DisconnectWatch:
    """Cancels a task when its client disconnects; without a `receive` it watches nothing."""

    def __init__(self, receive: Receive | None, task: asyncio.Task[bytes]) -> None:
        self._receive = receive
        self._task = task
        self._watching: asyncio.Task[None] | None = None
        self.disconnected = False

    def start(self) -> None:
        if self._receive is not None:
            self._watching = asyncio.ensure_future(self._watch(self._receive))

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self, receive: Receive) -> None:
        await left(receive)
        self.disconnected = True
        self._task.cancel()


def event(message: bytes) -> bytes:
    return b"event: message\ndata: %b\n\n" % message

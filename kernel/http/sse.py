"""Waiting for an answer over HTTP: watching whether the client is still there, and streaming what is said meanwhile."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from kernel.mcp.messages import ProtocolError

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_PATIENCE = 0.05
_KEEP_ALIVE = 15.0
_MOST_WAITING = 1024
_PING = b": ping\n\n"
_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


async def cancel_on_disconnect(answer: Coroutine[Any, Any, bytes], receive: Receive) -> bytes | None:
    """The answer, or None where the client went away first, which cancels the work.

    Most answers come before it is worth a second task to watch the client, so the watch begins a moment later.
    """
    task = asyncio.current_task()
    assert task is not None
    watch = _DisconnectWatch(receive, task)
    late = asyncio.get_running_loop().call_later(_PATIENCE, watch.start)
    try:
        return await answer
    except asyncio.CancelledError:
        if not watch.gone:
            raise
        task.uncancel()
        return None
    finally:
        late.cancel()
        watch.stop()


class Stream:
    """One response that stays JSON unless something is said before the answer; `emit` may be called by any thread."""

    def __init__(self, send: Send, id_: bytes) -> None:
        self._send = send
        self._id = id_
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._said: deque[bytes] = deque()
        self._open = True
        self._started = False

    def emit(self, message: bytes) -> None:
        """Queues a notification; it is dropped once the answer is out, or while the client does not keep up."""
        if self._open and len(self._said) < _MOST_WAITING:
            self._said.append(message)
            self._loop.call_soon_threadsafe(self._wake.set)

    async def run(self, answer: Coroutine[Any, Any, bytes], receive: Receive | None) -> bytes | None:
        """The answer, or None where it ended a stream or the client left; without `receive` nobody looks for that."""
        task = asyncio.ensure_future(answer)
        task.add_done_callback(lambda _: self._wake.set())
        watch = _DisconnectWatch(receive, task)
        watch.start()
        try:
            while self._said or not task.done():
                await self._step()
            return None if watch.gone else await self._finish(task)
        finally:
            self._open = False
            task.cancel()
            watch.stop()

    async def _step(self) -> None:
        try:
            async with asyncio.timeout(_KEEP_ALIVE if self._started else None):
                await self._wake.wait()
        except TimeoutError:
            await self._body(_PING)
            return
        self._wake.clear()
        while self._said:
            if not self._started:
                self._started = True
                await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await self._body(_frame(self._said.popleft()))

    async def _finish(self, task: asyncio.Task[bytes]) -> bytes | None:
        if not self._started:
            return task.result()
        try:
            last = task.result()
        except ProtocolError as refused:
            last = refused.reply(self._id)
        await self._body(_frame(last), more=False)
        return None

    async def _body(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


class _DisconnectWatch:
    """Cancels a task when its client disconnects; without a `receive` it watches nothing."""

    def __init__(self, receive: Receive | None, task: asyncio.Task[Any]) -> None:
        self._receive = receive
        self._task = task
        self._watching: asyncio.Task[None] | None = None
        self.gone = False

    def start(self) -> None:
        if self._receive is not None:
            self._watching = asyncio.ensure_future(self._watch(self._receive))

    def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        self._task.cancel()


def _frame(message: bytes) -> bytes:
    return b"event: message\ndata: %b\n\n" % message

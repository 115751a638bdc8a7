"""Waiting for an answer: cancellation on disconnect, and responses that become streams."""

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kernel.http import sse
from kernel.http.sse import Stream, cancel_on_disconnect
from kernel.mcp.messages import ProtocolError
from kernel.store.queue import Job
from tests.http.http_requests import legacy, meta, modern, send
from tests.http.mcp_fixture import MARKS, RELEASED, STARTED, Served

GONE = {"type": "http.disconnect"}
HEAD = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
START = {"type": "http.response.start", "status": 200, "headers": HEAD}


def frame(data: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": b"event: message\ndata: " + data + b"\n\n", "more_body": more}


class Line:
    """The two callables of an ASGI connection; `leave` disconnects the client."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.leave = asyncio.Event()

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def receive(self) -> Any:
        await self.leave.wait()
        return GONE


async def never() -> bytes:
    await asyncio.Event().wait()
    return b""


def test_fast_answer_starts_no_disconnect_watch() -> None:
    async def scene() -> bytes | None:
        return await cancel_on_disconnect(asyncio.sleep(0, b"done"), Line().receive)

    assert asyncio.run(scene()) == b"done"


def test_disconnect_cancels_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_WATCH_DELAY_SECONDS", 0)

    async def scene() -> tuple[bytes | None, int]:
        line = Line()
        line.leave.set()
        answer = await cancel_on_disconnect(never(), line.receive)
        task = asyncio.current_task()
        assert task is not None
        return answer, task.cancelling()

    assert asyncio.run(scene()) == (None, 0)


def test_cancellation_by_shutdown_is_not_a_disconnect() -> None:
    async def scene() -> None:
        task = asyncio.ensure_future(cancel_on_disconnect(never(), Line().receive))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())


def test_error_before_the_first_event_is_raised_for_its_status() -> None:
    async def scene() -> None:
        async def refuse() -> bytes:
            raise ProtocolError(-32021, "No")

        line = Line()
        with pytest.raises(ProtocolError, match="No"):
            await Stream(line.send, b"1").run(refuse(), line.receive)
        assert line.sent == []

    asyncio.run(scene())


def test_error_after_the_first_event_is_the_last_event() -> None:
    async def scene() -> list[Any]:
        line = Line()
        stream = Stream(line.send, b"7")

        async def refuse() -> bytes:
            stream.emit(b"{}")
            raise ProtocolError(-32021, "No")

        assert await stream.run(refuse(), line.receive) is None
        stream.emit(b"too late")
        return line.sent

    last = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32021,"message":"No"}}'
    assert asyncio.run(scene()) == [START, frame(b"{}"), frame(last, more=False)]


def test_notifications_of_a_thread_precede_the_answer() -> None:
    async def scene() -> list[Any]:
        line = Line()
        stream = Stream(line.send, b"1")

        async def work() -> bytes:
            await asyncio.to_thread(lambda: [stream.emit(b"%d" % number) for number in range(3)])
            return b"done"

        assert await stream.run(work(), None) is None
        return line.sent

    expected = [START, frame(b"0"), frame(b"1"), frame(b"2"), frame(b"done", more=False)]
    assert asyncio.run(scene()) == expected


def test_slow_reader_loses_notifications_and_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_MAX_QUEUED_MESSAGES", 2)

    async def scene() -> list[Any]:
        line = Line()
        stream = Stream(line.send, b"1")

        async def work() -> bytes:
            for number in range(5):
                stream.emit(b"%d" % number)
            return b"done"

        await stream.run(work(), None)
        return line.sent

    assert asyncio.run(scene()) == [START, frame(b"0"), frame(b"1"), frame(b"done", more=False)]


def test_ping_is_sent_only_after_the_stream_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "PING_SECONDS", 0.001)
    pinged = asyncio.Event()
    ping = {"type": "http.response.body", "body": b": ping\n\n", "more_body": True}

    async def scene() -> list[Any]:
        line = Line()

        async def send(message: Any) -> None:
            line.sent.append(message)
            if message == ping:
                pinged.set()

        stream = Stream(send, b"1")

        async def work() -> bytes:
            stream.emit(b"{}")
            await pinged.wait()
            return b"done"

        await stream.run(work(), None)
        return line.sent

    sent = asyncio.run(scene())
    assert sent[:3] == [START, frame(b"{}"), ping]
    assert sent[-1] == frame(b"done", more=False)


def test_disconnect_of_a_stream_cancels_the_work() -> None:
    async def scene() -> list[Any]:
        line = Line()
        stream = Stream(line.send, b"1")

        async def work() -> bytes:
            stream.emit(b"{}")
            line.leave.set()
            return await never()

        assert await stream.run(work(), line.receive) is None
        return line.sent

    assert asyncio.run(scene()) == [START, frame(b"{}")]


def test_shutdown_cancels_streams() -> None:
    async def scene() -> bool:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def work() -> bytes:
            begun.set()
            try:
                return await never()
            finally:
                ended.set()

        line = Line()
        task = asyncio.ensure_future(Stream(line.send, b"1").run(work(), line.receive))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled() and ended.is_set()

    assert asyncio.run(scene())


@pytest.fixture
def cancelled(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when any job is cancelled."""
    seen = threading.Event()
    cancel = Job.cancel

    def note(job: Job) -> None:
        cancel(job)
        seen.set()

    monkeypatch.setattr(Job, "cancel", note)
    return seen


@pytest.fixture
def held(server: Served) -> Iterator[Callable[[], None]]:
    """The writer is busy until the callable is called."""
    STARTED.clear()
    RELEASED.clear()
    MARKS.clear()
    thread = threading.Thread(target=send, args=(server.port, legacy("tools/call", name="hold")))
    thread.start()
    assert STARTED.wait(5)

    def release() -> None:
        RELEASED.set()
        thread.join()

    yield release
    release()


def half(server: Served, request: tuple[Any, list[tuple[str, str]]]) -> http.client.HTTPConnection:
    """Sends a request and does not wait for its answer."""
    body, headers = request
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("POST", "/mcp", json.dumps(body).encode(), dict(headers))
    return connection


def test_modern_call_in_the_queue_is_cancelled_by_a_disconnect(
    server: Served, held: Callable[[], None], cancelled: threading.Event
) -> None:
    half(server, modern("tools/call", name="mark", arguments={"text": "lost"})).close()
    assert cancelled.wait(5)
    held()
    send(server.port, modern("tools/call", name="mark", arguments={"text": "kept"}))
    assert MARKS == ["kept"]


def test_legacy_call_in_the_queue_survives_a_disconnect(server: Served, held: Callable[[], None]) -> None:
    half(server, legacy("tools/call", name="mark", arguments={"text": "first"})).close()
    assert send(server.port, legacy("ping")).status == 200
    held()
    send(server.port, legacy("tools/call", name="mark", arguments={"text": "second"}))
    assert MARKS == ["first", "second"]


def test_notification_is_sent_while_the_tool_runs(server: Served) -> None:
    RELEASED.clear()
    given = meta(progressToken=1)
    connection = half(server, modern("tools/call", name="speak", meta_=given))
    response = connection.getresponse()
    first = response.readline() + response.readline()
    RELEASED.set()
    rest = response.read()
    connection.close()
    assert first.startswith(b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress"')
    assert rest.count(b"event: message") == 2


def test_leaving_a_stream_cancels_a_modern_call(server: Served, cancelled: threading.Event) -> None:
    RELEASED.clear()
    connection = half(server, modern("tools/call", name="speak", meta_=meta(progressToken=1)))
    response = connection.getresponse()
    assert response.readline() == b"event: message\n"
    response.close()
    connection.close()
    assert cancelled.wait(5)
    RELEASED.set()

"""The id of a request, which its answer and the log name, and the line about it in the log."""

import logging
from collections.abc import Callable, Sequence
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernel.core.ids import new_call_id
from kernel.core.limits import Header
from kernel.core.status_counts import STATUSES

# Takes the status of a response and the bytes of its body, once.
Report = Callable[[int, int], None]

GONE = 499  # the client has left before its answer; of nginx
_log = logging.getLogger("quipu.requests")
_NAME = b"x-request-id"
_MOST_ID = 128
_MOST_CHARS = 200  # of a path
_TRACE = slice(3, 35)  # of `traceparent`: 00-TRACE-SPAN-FLAGS


def request_id(headers: Sequence[Header]) -> str:
    """Return the `X-Request-ID` of a request, or a new id for none and for one that could not stand in a line."""
    for name, value in headers:
        if name == _NAME:
            id_ = value.decode("latin-1")
            is_word = id_.isascii() and id_.isprintable() and " " not in id_
            return id_ if is_word and 0 < len(id_) <= _MOST_ID else new_call_id()
    return new_call_id()


def id_header(id_: str) -> Header:
    return _NAME, id_.encode()


def begin_report(id_: str, client: str, method: str, url: bytes, headers: Sequence[Header]) -> Report:
    """Return the report of a request, a line of the log: who asked, what for, and the answer; no query and no body."""
    since, values = monotonic(), dict(headers)
    path = url[: _MOST_CHARS + 1].partition(b"?")[0].decode("latin-1")
    fields: dict[str, object] = {
        "request": id_,
        "client": client,
        "method": method,
        "path": path if len(path) <= _MOST_CHARS else f"{path[:_MOST_CHARS]}…",
    }
    trace = values.get(b"traceparent", b"")[_TRACE].decode("latin-1")

    def report(status: int, size: int) -> None:
        fields.update(status=status, bytes=size, milliseconds=round((monotonic() - since) * 1000, 3))
        _log.info("request", extra={"fields": {**fields, "trace": trace} if trace else fields})

    return report


def observed(app: ASGIApp, report: Report | None) -> ASGIApp:
    """Return the same application, with the status of its response counted and reported."""

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        status = size = 0

        async def noting(message: Message) -> None:
            nonlocal status, size
            if "status" in message:  # the begin of a response
                status = message["status"]
                STATUSES[status] += 1
            size += len(message.get("body", b""))
            await send(message)

        try:
            await app(scope, receive, noting)
            status = status or GONE
        finally:
            if report is not None:
                report(status or 500, size)

    return counting

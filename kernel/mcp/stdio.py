"""MCP over standard input and output: one JSON message per line, both eras in one process."""

import asyncio
import contextlib
import signal
from typing import cast

import msgspec
from msgspec import UNSET

from kernel.calls.call import Pending
from kernel.calls.dispatch import Dispatch
from kernel.core.limits import Limits
from kernel.mcp.inbound import LEGACY_LEVEL, actor_name, over_stdio
from kernel.mcp.messages import (
    Inbound,
    Initialize,
    Message,
    Params,
    ProtocolError,
    SetLevel,
    Subscribe,
    encoded_id,
    open_message,
)
from kernel.mcp.protocol import INTERNAL_ERROR, INVALID_REQUEST
from kernel.mcp.server import Response, Service
from kernel.mcp.stdio_streams import StdinReader, StdoutWriter, take_over
from kernel.mcp.subscriptions import Subscriptions
from kernel.security.permissions import ANONYMOUS, ANONYMOUS_CALLER, with_client_name

# Calls under way at the end of input get this long; clients kill a server that takes longer (the SDKs wait 2 s).
DRAIN_SECONDS = 1.0
_MAX_LISTENING = 64  # subscriptions of one client


class _Cancelled(msgspec.Struct):
    requestId: int | str | None = None


def serve(
    service: Service, dispatch: Dispatch, input_fd: int = 0, output_fd: int = 1, limits: Limits = Limits()
) -> None:
    """Serves one client until the end of input or SIGTERM, then finishes calls for at most a second.

    The client started the process, so it has full access.
    """
    asyncio.run(converse(service, dispatch, *take_over(input_fd, output_fd), limits))


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
        self._level: str | None = LEGACY_LEVEL
        self._subscriptions = Subscriptions(dispatch, service.subscribable, writer.write)
        self._listening: dict[int | str, Subscriptions] = {}

    def take(self, line: bytes | None) -> None:
        """Handles one line; the response is written at once or when its call is done."""
        id_ = b"null"
        try:
            envelope = self._open(line)
            if envelope.id is UNSET or envelope.method is UNSET:
                self._on_notification(envelope)
                return
            id_ = encoded_id(envelope.id)
            inbound = over_stdio(envelope, id_, self._actor, self._level, self._service.routes)
            inbound.caller, inbound.dispatch = with_client_name(ANONYMOUS_CALLER, inbound.actor), self._dispatch
            self._note(inbound)
            if self._service.listens(inbound):
                self._listen(envelope.id, inbound)
            else:
                self._submit(envelope.id, inbound)
        except ProtocolError as error:
            self._writer.write(error.reply(id_))

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

    def _open(self, line: bytes | None) -> Message:
        if line is None:
            raise ProtocolError(INVALID_REQUEST, "Line too long")
        return open_message(line, self._limits)

    def _on_notification(self, envelope: Message) -> None:
        if envelope.method == "notifications/cancelled":
            id_ = _cancelled(envelope.params)
            if id_ is not None and id_ in self._calls:
                self._calls.pop(id_).cancel()
            elif id_ is not None and id_ in self._listening:
                self._listening.pop(id_).close()
        elif envelope.method is UNSET and not (bytes(envelope.result) or bytes(envelope.error)):
            raise ProtocolError(INVALID_REQUEST, "A message is one JSON-RPC request or notification object")

    def _note(self, inbound: Inbound) -> None:
        params = inbound.params
        if isinstance(params, Initialize):
            self._actor = actor_name(params.clientInfo.name)
        elif isinstance(params, SetLevel):
            self._level = params.level
        elif isinstance(params, Subscribe):
            change = self._subscriptions.add if inbound.method == "resources/subscribe" else self._subscriptions.drop
            change(params.uri)

    def _listen(self, key: int | str, inbound: Inbound) -> None:
        self._check_id(key)
        if len(self._listening) >= _MAX_LISTENING:
            raise ProtocolError(INTERNAL_ERROR, f"There are {_MAX_LISTENING} subscriptions, end one first")
        subscribable, write = self._service.subscribable, self._writer.write
        subscriptions = self._listening[key] = Subscriptions(self._dispatch, subscribable, write, id_=inbound.id)
        write(subscriptions.listen(inbound.params))

    def _check_id(self, key: int | str) -> None:
        if key in self._calls or key in self._listening:
            raise ProtocolError(INVALID_REQUEST, "A request with this id is under way")

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
        self._writer.write(response.reply(inbound.id) if isinstance(response, ProtocolError) else response)
        if not self._calls:
            self._idle.set()

    def _emit(self, message: bytes) -> None:
        self._loop.call_soon_threadsafe(self._writer.write, message)


def _cancelled(params: msgspec.Raw | Params) -> int | str | None:
    try:
        return msgspec.json.decode(cast("msgspec.Raw", params), type=_Cancelled).requestId
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

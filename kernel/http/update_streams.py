"""Notifications of changed resources over HTTP: streams, and the sessions of the older revisions that subscribe."""

import asyncio
import hmac
from collections.abc import Callable
from contextlib import suppress

from starlette.types import Receive, Send

from kernel.core.ids import new_id
from kernel.core.limits import Header, Headers
from kernel.http.edge import begin_response, left, send_part
from kernel.http.sse import HEADERS, PING, PING_SECONDS, event
from kernel.mcp.messages import LEGACY, Inbound, Listen, Subscribe
from kernel.mcp.server import Service
from kernel.mcp.subscriptions import Subscriptions, listen_result
from kernel.security.permissions import Caller

SESSION = b"mcp-session-id"
_MAX_SESSIONS = 1024  # that have subscribed; the oldest without a stream makes room
_MAX_OF_CALLER = 256  # sessions that have subscribed, and streams; all callers without a key are one
_Owner = tuple[str, str]  # tenant and key
Allowed = Callable[[], bool]


class UpdateStream:
    """A response that is a stream of notifications, until its client leaves or the server ends it.

    A notification that still waits is not queued again: it says that something has changed, whatever it was.
    """

    def __init__(self, send: Send, waiting: dict[bytes, None]) -> None:
        self._send = send
        self._waiting = waiting
        self._wake = asyncio.Event()
        self._wake.set()
        self._ended = False

    def put(self, message: bytes) -> None:
        self._waiting[message] = None
        self._wake.set()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    async def run(self, receive: Receive, allowed: Allowed, last: bytes = b"") -> None:
        """Send all queued bytes, and `last` if the server ends the stream; asks at each ping if it is `allowed`."""
        await begin_response(self._send, 200, HEADERS)
        await send_part(self._send, PING)  # so that the client sees the headers at once
        watch = asyncio.ensure_future(self._watch(receive))
        try:
            while not (self._ended or watch.done()):
                await self._step(allowed)
        finally:
            watch.cancel()
        if not watch.done() or watch.cancelled():
            await send_part(self._send, event(last) if last else b"", more=False)

    async def _step(self, allowed: Allowed) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PING_SECONDS):
                await self._wake.wait()
        if not allowed():
            self._ended = True
            return
        if not self._wake.is_set():
            await send_part(self._send, PING)
        self._wake.clear()
        while self._waiting:
            message = next(iter(self._waiting))
            del self._waiting[message]
            await send_part(self._send, event(message))

    async def _watch(self, receive: Receive) -> None:
        await left(receive)
        self._wake.set()


class _Session:
    """The subscriptions of a session, its stream, and the notifications that wait for a stream."""

    def __init__(self, owner: _Owner) -> None:
        self.owner = owner
        self.stream: UpdateStream | None = None
        self.subscriptions: Subscriptions | None = None
        self.waiting: dict[bytes, None] = {}

    def send(self, message: bytes) -> None:
        self.waiting[message] = None
        if self.stream is not None:
            self.stream.put(message)

    def close(self) -> None:
        if self.subscriptions is not None:
            self.subscriptions.close()
        if self.stream is not None:
            self.stream.end()


class UpdateStreams:
    """The open streams, and the sessions with subscriptions.

    The id of a session is an identifier and its signature for the caller: nothing is kept of a session until it
    subscribes or opens its stream.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._open: dict[UpdateStream, _Owner] = {}
        self._sessions: dict[str, _Session] = {}

    def note(self, service: Service, inbound: Inbound, headers: Headers) -> tuple[Header, ...]:
        """Takes notice of a request of the older revisions that was answered; what is added to its headers."""
        if inbound.era is not LEGACY or not service.subscribable:
            return ()
        if inbound.method == "initialize":
            return ((SESSION, self._signed(new_id("session"), inbound.caller).encode()),)
        params = inbound.params
        id_ = self.session_id(headers, inbound.caller) if isinstance(params, Subscribe) else None
        if id_ is not None:
            self._change(id_, service, inbound, params.uri)
        return ()

    def session_id(self, headers: Headers, caller: Caller) -> str | None:
        """Return the id of the request's session; None for none, and for an id that was not issued to this caller."""
        value = headers.get(SESSION, b"").decode("latin-1")
        ours = self._signed(value.rpartition(".")[0], caller)
        return value if hmac.compare_digest(value.encode(), ours.encode()) else None

    def has_room(self, caller: Caller) -> bool:
        return list(self._open.values()).count(_owner(caller)) < _MAX_OF_CALLER

    async def run_session(self, id_: str, caller: Caller, send: Send, receive: Receive, *, allowed: Allowed) -> None:
        """The stream of a session, in place of a stream that is open."""
        session = self._session(id_, caller)
        stream = UpdateStream(send, session.waiting)
        if session.stream is not None:
            session.stream.end()
        session.stream = stream
        try:
            await self._run(stream, caller, receive, allowed)
        finally:
            if session.stream is stream:
                session.stream = None
            # After its end the id may be that of a later session.
            if session.subscriptions is None and session.stream is None and self._sessions.get(id_) is session:
                del self._sessions[id_]

    def end_session(self, id_: str) -> None:
        session = self._sessions.pop(id_, None)
        if session is not None:
            session.close()

    async def run_listen(
        self, service: Service, inbound: Inbound, send: Send, receive: Receive, *, allowed: Allowed
    ) -> None:
        stream, params = UpdateStream(send, {}), inbound.params
        assert isinstance(params, Listen)
        caller = inbound.caller
        subscriptions = Subscriptions(
            inbound.dispatch, service.subscribable, stream.put, tenant=caller.tenant, id_=inbound.id
        )
        stream.put(subscriptions.listen(params))
        try:
            await self._run(stream, caller, receive, allowed, listen_result(inbound.id, service.server))
        finally:
            subscriptions.close()

    def close(self) -> None:
        for stream in self._open:
            stream.end()

    async def _run(
        self, stream: UpdateStream, caller: Caller, receive: Receive, allowed: Allowed, last: bytes = b""
    ) -> None:
        self._open[stream] = _owner(caller)
        try:
            await stream.run(receive, allowed, last)
        finally:
            del self._open[stream]

    def _change(self, id_: str, service: Service, inbound: Inbound, uri: str) -> None:
        session = self._session(id_, inbound.caller)
        if session.subscriptions is None:
            session.subscriptions = Subscriptions(
                inbound.dispatch, service.subscribable, session.send, tenant=inbound.caller.tenant
            )
        if inbound.method == "resources/subscribe":
            session.subscriptions.add(uri)
        else:
            session.subscriptions.drop(uri)

    def _session(self, id_: str, caller: Caller) -> _Session:
        session = self._sessions.setdefault(id_, _Session(_owner(caller)))
        mine = [other_id for other_id, other in self._sessions.items() if other.owner == session.owner]
        if len(mine) > _MAX_OF_CALLER or len(self._sessions) > _MAX_SESSIONS:
            several = mine if len(mine) > _MAX_OF_CALLER else self._sessions
            idle = (other_id for other_id in several if self._sessions[other_id].stream is None and other_id != id_)
            self.end_session(next(idle, ""))
        return session

    def _signed(self, id_: str, caller: Caller) -> str:
        text = "\0".join((id_, caller.tenant, caller.key)).encode()
        return f"{id_}.{hmac.digest(self._key, text, 'sha256').hex()}"


def _owner(caller: Caller) -> _Owner:
    return caller.tenant, caller.key

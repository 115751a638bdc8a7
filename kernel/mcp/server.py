"""The MCP methods of one profile, for both eras and any transport: from a decoded request to an encoded response."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import parse_qs

from kernel.calls.arguments import nearest_name
from kernel.calls.dialect import Dialect
from kernel.calls.dispatch import Answer, Call, Pending, ToolEntry, catch_faults, fail, with_idempotency_key
from kernel.calls.schema import input_schema
from kernel.calls.tools import InputRequired, Reply
from kernel.core.errors import Fault
from kernel.core.text import json_bytes
from kernel.mcp import listings, messages
from kernel.mcp.elicitation import Elicitation, purpose
from kernel.mcp.messages import (
    COUNTER_OFFER,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LEGACY,
    LISTEN,
    METHOD_NOT_FOUND,
    METHODS,
    MODERN,
    Inbound,
    Object,
    ProtocolError,
    ToolRoute,
    header_params,
)
from kernel.mcp.resources import ResourceMethods, prompt_purpose
from kernel.security.permissions import FULL_ACCESS, Grant

Response = bytes | ProtocolError
Done = Callable[[Response], None]
OnRequest = Callable[[Inbound], None]

_OPEN = b'{"jsonrpc":"2.0","id":%b,"result":%b'
_ID = b'{"jsonrpc":"2.0","id":'
_TEXT = b',"result":{"content":[{"type":"text","text":'
_TEXT_END = b"}]"
_BLOCKS = b',"result":{"content":'
_STRUCTURED = b',"structuredContent":'
_TOO_OLD = "This needs to ask you something first, which takes a client of protocol version 2026-07-28."
# Characters of an unknown name in an error message.
_MAX_NAME_SHOWN = 128
_KEPT_QUERIES = 64
_KEPT_ROUTES = 1024  # a few times all tools that there are


class Profile(NamedTuple):
    """The tools that a client is shown, all or those that `only_read`, and whether the schemas of their arguments are
    those for OpenAI's strict mode.
    """

    only_read: bool = False
    strict: bool = False


EVERYTHING = Profile()


class Service:
    """Some dialects as one MCP server.

    Its lists obey `grant`. A call of another tool is refused as forbidden, not as unknown. The store comes
    with each request.
    """

    def __init__(
        self,
        entries: Mapping[str, ToolEntry],
        dialects: Sequence[Dialect],
        *,
        profile: Profile = EVERYTHING,
        seal_key: bytes,
        grant: Grant = FULL_ACCESS,
        on_request: OnRequest | None = None,
    ) -> None:
        self._on_request = on_request
        tools = [tool for dialect in dialects for tool in dialect.tools]
        served_tools = [tool for tool in tools if tool.mode == "read" or not profile.only_read]
        self.routes = {tool.name: _route(entries[tool.name]) for tool in served_tools}
        dialects = [dialect for dialect in dialects if grant.allows_dialect(dialect.name)]
        served_tools = [tool for tool in served_tools if entries[tool.name].visible_to(grant)]
        self._names = [tool.name for tool in served_tools]
        capabilities = listings.capabilities(served_tools, dialects)
        self.subscribable = listings.subscribable(dialects)
        self.server = listings.SERVER
        self._listens = METHODS[LISTEN].needs in capabilities
        self._elicitation = Elicitation(seal_key)
        self._resources = ResourceMethods(dialects, self._elicitation.interaction)
        self._methods = self._resources.offered(capabilities)
        cache = "own" if grant.by_key else "static"
        self._static_results = {
            era.name: listings.static_results(
                era, [entries[tool.name] for tool in served_tools], dialects, cache, strict=profile.strict
            )
            for era in (LEGACY, MODERN)
        }
        self._tails = {era.name: listings.result_tails(era) for era in (LEGACY, MODERN)}
        self._call_tails = {
            name: (b',"isError":false' + end.plain, b',"isError":true' + end.plain) for name, end in self._tails.items()
        }
        self._handshakes = listings.handshakes(served_tools, dialects)

    def is_interactive(self, inbound: Inbound) -> bool:
        """Return whether the handler may report progress, log or request input before it answers."""
        if inbound.route is not None:
            return inbound.route.interactive
        if self.listens(inbound):
            return True
        return inbound.method == "prompts/get" and self._resources.is_interactive(inbound.params.name)

    def listens(self, inbound: Inbound) -> bool:
        """Return whether this is a request for notifications, which its transport answers."""
        return inbound.method == LISTEN and inbound.era is MODERN and self._listens

    def submit(self, inbound: Inbound, on_done: Done) -> bytes | Pending:
        """Return the response if it is there at once, else Pending, and `on_done` gets it on this event loop.

        Raises ProtocolError and Forbidden; `on_done` may get a ProtocolError too.
        """
        if self._on_request is not None:
            self._on_request(inbound)
        if inbound.route is not None:
            return self._submit_call(inbound, inbound.route, on_done)
        if inbound.method in self._methods:
            return _finish_task(self._call_method(inbound), on_done)
        return self._static_response(inbound)

    async def answer(self, inbound: Inbound) -> bytes:
        """Return the response; cancellation of the task cancels the call. Raises ProtocolError and Forbidden."""
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        response = self.submit(inbound, partial(_resolve, future))
        return response if isinstance(response, bytes) else await _wait(response, future)

    def _static_response(self, inbound: Inbound) -> bytes:
        """Return the response to a method with a fixed result; raises ProtocolError."""
        method = inbound.method
        static = self._static_results[inbound.era.name].get(method)
        if static is not None:
            if isinstance(inbound.params, messages.Page) and inbound.params.cursor:
                raise ProtocolError(INVALID_PARAMS, "Unknown cursor")
            return _OPEN % (inbound.id, static)
        if method == "initialize" and inbound.era is LEGACY:
            version: str = inbound.params.protocolVersion
            return _OPEN % (inbound.id, self._handshakes.get(version) or self._handshakes[COUNTER_OFFER])
        if method == "tools/call":
            name: str = inbound.params.name[:_MAX_NAME_SHOWN]
            near = nearest_name(name, self._names)
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {name}{near and f', did you mean {near}?'}")
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found")

    def _submit_call(self, inbound: Inbound, route: ToolRoute, on_done: Done) -> bytes | Pending:
        entry, arguments = route.entry, _arguments(inbound.params)
        request, interaction = "", None
        if route.interactive:
            request = purpose(inbound.caller.audit_identity, inbound.method, entry.tool.name, arguments)
            interaction = self._elicitation.interaction(inbound, entry.dialect.name, request)

        meta = inbound.params.meta
        caller = inbound.caller
        if meta is not None and meta.idempotency_key is not None:
            caller = with_idempotency_key(caller, meta.idempotency_key)
        call = Call(entry, arguments, caller, interaction)
        answer = inbound.dispatch.submit(call, lambda answer: on_done(self._respond(inbound, request, answer)))
        if isinstance(answer, Pending):
            return answer
        response = self._respond(inbound, request, answer)
        if isinstance(response, ProtocolError):
            raise response
        return response

    def _respond(self, inbound: Inbound, request: str, answer: Answer) -> Response:
        """Return the response to a tools/call; `request` is the fingerprint that the state of a next round is
        bound to.
        """
        if isinstance(answer, Reply):
            return self.format_result(inbound, answer)
        assert inbound.route is not None
        entry = inbound.route.entry
        if inbound.era is LEGACY:
            return self.format_result(inbound, fail(entry, Fault("disabled", _TOO_OLD)))
        response = self._input_required(inbound, answer, request)
        return self.format_result(inbound, fail(entry, response)) if isinstance(response, Fault) else response

    def format_result(self, inbound: Inbound, reply: Reply) -> bytes:
        """Return the response to a tools/call; in the legacy era only an object may be structured content."""
        era, structured = inbound.era, reply.structured
        success, failure = self._call_tails[era.name]
        if reply.content is None:
            content = (_TEXT, json_bytes(reply.body.decode("utf-8", "replace")), _TEXT_END)
        else:
            content = (_BLOCKS, reply.content)
        if reply.fault is not None:
            return b"".join((_ID, inbound.id, *content, failure))
        if structured is not None and (era is MODERN or structured[:1] == b"{"):
            return b"".join((_ID, inbound.id, *content, _STRUCTURED, structured, success))
        return b"".join((_ID, inbound.id, *content, success))

    async def _call_method(self, inbound: Inbound) -> bytes:
        method = inbound.method
        try:
            result = await self._methods[method](inbound)
        except Fault as fault:
            raise _protocol_error(fault) from None
        if isinstance(result, InputRequired):
            if inbound.era is LEGACY:
                raise ProtocolError(INVALID_PARAMS, _TOO_OLD)
            response = self._input_required(inbound, result, prompt_purpose(inbound))
        else:
            ends = self._tails[inbound.era.name]
            is_fixed = method == "resources/read" and self._resources.is_fixed(inbound.params.uri)
            tail = ends.fixed if is_fixed else ends.fresh if METHODS[method].cache else ends.plain
            response = _encoded(inbound, result, tail)
        if isinstance(response, Fault):
            raise _protocol_error(response)
        if isinstance(response, ProtocolError):
            raise response
        return response

    def _input_required(self, inbound: Inbound, ask: InputRequired, request: str) -> bytes | Fault | ProtocolError:
        question = catch_faults(self._elicitation.input_required, inbound, ask, request)
        if isinstance(question, (Fault, ProtocolError)):
            return question
        return _encoded(inbound, question, self._tails["modern"].asking)


def profiles(make: Callable[[Profile, Grant], Service]) -> Callable[[bytes, Grant], Service]:
    """Return the service for a query string and a grant: `tools=read` leaves out the tools that write,
    `schemas=strict` is for OpenAI's strict mode.

    `make` is called for each request; it gets no places, so that all keys of a permission share a service.
    """

    def choose(query: bytes, grant: Grant) -> Service:
        return make(_profile(query) if query else EVERYTHING, grant.of_all_places())

    return choose


@lru_cache(_KEPT_QUERIES)
def _profile(query: bytes) -> Profile:
    chosen = parse_qs(query.decode("latin-1"))
    return Profile(chosen.get("tools") == ["read"], chosen.get("schemas") == ["strict"])


@lru_cache(_KEPT_ROUTES)
def _route(entry: ToolEntry) -> ToolRoute:
    tool = entry.tool
    header = tool.name.encode() if tool.name.isascii() else b""
    return ToolRoute(entry, tool.interactive or tool.long, header_params(input_schema(tool)), header)


def _resolve(future: asyncio.Future[Response], response: Response) -> None:
    if not future.done():
        future.set_result(response)


async def _wait(pending: Pending, future: asyncio.Future[Response]) -> bytes:
    try:
        response = await future
    except asyncio.CancelledError:
        pending.cancel()
        raise
    if isinstance(response, ProtocolError):
        raise response
    return response


def _finish_task(work: Coroutine[object, None, bytes], on_done: Done) -> Pending:
    task = asyncio.ensure_future(work)

    def finished(task: asyncio.Task[bytes]) -> None:
        if not task.cancelled():
            response = catch_faults(_response_of, task)
            on_done(_protocol_error(response) if isinstance(response, Fault) else response)

    task.add_done_callback(finished)
    return Pending(task.cancel)


def _response_of(task: asyncio.Task[bytes]) -> Response:
    try:
        return task.result()
    except ProtocolError as error:
        return error


def _arguments(params: messages.Call) -> bytes:
    arguments = bytes(params.arguments)
    if arguments[:1] == b"{":
        return arguments
    if arguments != b"null":
        raise ProtocolError(INVALID_PARAMS, "Invalid params: arguments must be an object")
    return b"{}"


def _encoded(inbound: Inbound, result: Object, tail: bytes) -> bytes | Fault:
    """Return the message, or a Fault if the result of the handler is not JSON."""
    return catch_faults(lambda: _OPEN % (inbound.id, listings.close(result, tail)))


def _protocol_error(fault: Fault) -> ProtocolError:
    internal = fault.code in ("busy", "storage", "internal")
    return ProtocolError(INTERNAL_ERROR if internal else INVALID_PARAMS, fault.message)

"""The MCP methods of one profile, for both eras and any transport: a decoded request in, an encoded response out."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal
from urllib.parse import parse_qs

import msgspec

from kernel.dispatch import Bound, guard, refused
from kernel.errors import Fault
from kernel.mcp import listings, messages, sealed_state
from kernel.mcp.elicitation import Rounds
from kernel.mcp.messages import Inbound, Object, Pace, Plan, Refused
from kernel.mcp.protocol import COUNTER_OFFER, INTERNAL_ERROR, INVALID_PARAMS, LEGACY, METHOD_NOT_FOUND, METHODS, MODERN
from kernel.mcp.resources import Offers, prompt_purpose
from kernel.mcp.routing_headers import mirrored
from kernel.schema import input_schema
from kernel.security.permissions import WHOLE, Grant
from kernel.store.queue import Job
from kernel.tools import Ask, Dialect, Reply

Tools = Literal["all", "read"]

_OPEN = b'{"jsonrpc":"2.0","id":%b,"result":%b'
_ID = b'{"jsonrpc":"2.0","id":'
_TEXT = b',"result":{"content":[{"type":"text","text":'
_TEXT_END = b"}]"
_BLOCKS = b',"result":{"content":'
_STRUCTURED = b',"structuredContent":'
_TOO_OLD = "This needs to ask you something first, which takes a client of protocol version 2026-07-28."
_NAME_SHOWN = 128


class Service:
    """Some dialects as one MCP server; `tools="read"` leaves out what writes.

    It shows what is within `reach`, to whom it is made for; what is not is still told from what does not exist. The
    store comes with each request.
    """

    def __init__(
        self,
        bound: Mapping[str, Bound],
        dialects: Sequence[Dialect],
        *,
        version: str,
        tools: Tools = "all",
        seal_key: bytes,
        reach: Grant = WHOLE,
    ) -> None:
        served = [tool for dialect in dialects for tool in dialect.tools if tools == "all" or tool.mode == "read"]
        self.plans = {tool.name: _plan(bound[tool.name]) for tool in served}
        dialects = [dialect for dialect in dialects if reach.sees(dialect.name)]
        served = [tool for tool in served if bound[tool.name].shown(reach)]
        offered = listings.capabilities(served, dialects)
        self._rounds = Rounds(seal_key)
        self._offers = Offers(dialects, self._rounds.turn)
        self._methods = {name: work for name, work in self._offers.methods.items() if METHODS[name].needs in offered}
        cache = "own" if reach.keyed else "static"
        self._fixed = {era.name: listings.fixed(era, version, served, dialects, cache) for era in (LEGACY, MODERN)}
        self._ends = {era.name: listings.finish(era, version) for era in (LEGACY, MODERN)}
        self._called_ends = {
            name: (b',"isError":false' + end.plain, b',"isError":true' + end.plain) for name, end in self._ends.items()
        }
        self._handshakes = listings.handshakes(version, served, dialects)

    def pace(self, inbound: Inbound) -> Pace:
        """Whether the answer comes at once, after a wait, or after a wait in which the handler may speak."""
        if inbound.plan is not None:
            return inbound.plan.pace
        method = inbound.method
        if method not in self._methods:
            return "now"
        return "talking" if method == "prompts/get" and self._offers.talks(inbound.params.name) else "queued"

    def now(self, inbound: Inbound) -> bytes:
        """The response to a request of that pace; raises Refused."""
        if inbound.plan is not None:
            reply: Any = inbound.dispatch.now(inbound.plan.bound, inbound.params.arguments, inbound.caller)
            if reply.fault == "invalid" and bytes(inbound.params.arguments)[:1] != b"{":
                # Not the tool's matter after all: the decoder met something else than an object, and nothing ran.
                reply = inbound.dispatch.now(inbound.plan.bound, _arguments(inbound.params), inbound.caller)
            return self._called(inbound, reply)
        method = inbound.method
        fixed = self._fixed[inbound.era.name].get(method)
        if fixed is not None:
            if isinstance(inbound.params, messages.Page) and inbound.params.cursor:
                raise Refused(INVALID_PARAMS, "Unknown cursor")
            return _OPEN % (inbound.id, fixed)
        if method == "initialize" and inbound.era is LEGACY:
            asked: str = inbound.params.protocolVersion
            return _OPEN % (inbound.id, self._handshakes.get(asked) or self._handshakes[COUNTER_OFFER])
        if method == "tools/call":
            raise Refused(INVALID_PARAMS, f"Unknown tool: {inbound.params.name[:_NAME_SHOWN]}")
        raise Refused(METHOD_NOT_FOUND, "Method not found")

    async def answer(self, inbound: Inbound) -> bytes:
        """The response to a request of any other pace; raises Refused."""
        plan = inbound.plan
        if plan is None:
            return await self._offer(inbound)
        arguments = _arguments(inbound.params)
        if plan.pace == "talking":
            return await self._talk(inbound, plan.bound, arguments)
        reply: Any = await inbound.dispatch.call(plan.bound, arguments, inbound.caller)
        return self._called(inbound, reply)

    def start(self, inbound: Inbound, done: Callable[[bytes], None]) -> bytes | Job:
        """`answer` for a tools/call that never speaks: the response, or the job whose response `done` will get."""
        plan = inbound.plan
        assert plan is not None
        arguments = _arguments(inbound.params)

        def heard(reply: Reply) -> None:
            done(self._called(inbound, reply))

        begun: Any = inbound.dispatch.start(plan.bound, arguments, inbound.caller, heard)
        return begun if isinstance(begun, Job) else self._called(inbound, begun)

    def _called(self, inbound: Inbound, reply: Reply) -> bytes:
        era, found = inbound.era, reply.structured
        good, bad = self._called_ends[era.name]
        if reply.content is None:
            shown = (_TEXT, msgspec.json.encode(reply.body.decode("utf-8", "replace")), _TEXT_END)
        else:
            shown = (_BLOCKS, reply.content)
        if reply.fault is not None:
            return b"".join((_ID, inbound.id, *shown, bad))
        if found is not None and (era is MODERN or found[:1] == b"{"):
            return b"".join((_ID, inbound.id, *shown, _STRUCTURED, found, good))
        return b"".join((_ID, inbound.id, *shown, good))

    async def _talk(self, inbound: Inbound, bound: Bound, arguments: bytes) -> bytes:
        belongs = sealed_state.purpose(inbound.caller.mark, inbound.method, bound.tool.name, arguments)
        turn = self._rounds.turn(inbound, bound.dialect.name, belongs)
        reply = await inbound.dispatch.call(bound, arguments, inbound.caller, turn)
        if isinstance(reply, Reply):
            return self._called(inbound, reply)
        if inbound.era is LEGACY:
            return self._called(inbound, refused(bound, Fault("disabled", _TOO_OLD)))
        asked = self._asked(inbound, reply, belongs)
        return self._called(inbound, refused(bound, asked)) if isinstance(asked, Fault) else asked

    async def _offer(self, inbound: Inbound) -> bytes:
        method = inbound.method
        try:
            result = await self._methods[method](inbound)
        except Fault as fault:
            raise _refusal(fault) from None
        if isinstance(result, Ask):
            if inbound.era is LEGACY:
                raise Refused(INVALID_PARAMS, _TOO_OLD)
            encoded = self._asked(inbound, result, prompt_purpose(inbound))
        else:
            ends = self._ends[inbound.era.name]
            encoded = _encoded(inbound, result, ends.fresh if METHODS[method].cache else ends.plain)
        if isinstance(encoded, Fault):
            raise _refusal(encoded)
        return encoded

    def _asked(self, inbound: Inbound, ask: Ask, belongs: str) -> bytes | Fault:
        question = guard(self._rounds.question, inbound, ask, belongs)
        if isinstance(question, Refused):
            raise question
        return question if isinstance(question, Fault) else _encoded(inbound, question, self._ends["modern"].asking)


def profiles(make: Callable[[Tools, Grant], Service]) -> Callable[[bytes, Grant], Service]:
    """The profile a query string asks for, each made when first asked for: `tools=read`, or everything in reach."""
    made = cache(make)

    def choose(query: bytes, reach: Grant) -> Service:
        if not query:
            return made("all", reach)
        return made("read" if parse_qs(query.decode("latin-1")).get("tools") == ["read"] else "all", reach)

    return choose


def _plan(bound: Bound) -> Plan:
    tool = bound.tool
    pace = "talking" if tool.talk or tool.long else "now" if bound.short else "queued"
    header = tool.name.encode() if tool.name.isascii() else b""
    return Plan(bound, pace, mirrored(input_schema(tool)), header)


def _arguments(params: messages.Call) -> bytes:
    arguments = bytes(params.arguments)
    if arguments[:1] == b"{":
        return arguments
    if arguments != b"null":
        raise Refused(INVALID_PARAMS, "Invalid params: arguments must be an object")
    return b"{}"


def _encoded(inbound: Inbound, result: Object, tail: bytes) -> bytes | Fault:
    """The message, or the Fault of a handler whose result is not JSON."""
    return guard(lambda: _OPEN % (inbound.id, listings.close(result, tail)))


def _refusal(fault: Fault) -> Refused:
    ours = fault.code in ("busy", "storage", "internal")
    return Refused(INTERNAL_ERROR if ours else INVALID_PARAMS, fault.message)

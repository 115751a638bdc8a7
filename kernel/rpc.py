"""The MCP methods of one profile, for both eras and any transport: a decoded request in, an encoded response out."""

from collections.abc import Callable, Coroutine, Sequence
from functools import cache
from typing import Any, Literal
from urllib.parse import parse_qs

import msgspec

from kernel import envelope, pages, seal
from kernel.dispatch import Bound, Dispatch, guard
from kernel.envelope import Inbound, Object, Pace, Plan, Refused
from kernel.eras import COUNTER_OFFER, INTERNAL_ERROR, INVALID_PARAMS, LEGACY, METHOD_NOT_FOUND, METHODS, MODERN
from kernel.errors import Fault
from kernel.mirror import mirrored
from kernel.offers import Offers, prompt_purpose
from kernel.schema import input_schema
from kernel.tools import Ask, Dialect, Reply
from kernel.turns import Rounds

Tools = Literal["all", "read"]

_OPEN = b'{"jsonrpc":"2.0","id":%b,"result":%b'
_CALLED = b'{"jsonrpc":"2.0","id":%b,"result":{"content":%b,"isError":false%b'
_FAILED = b'{"jsonrpc":"2.0","id":%b,"result":{"content":%b,"isError":true%b'
_STRUCTURED = b'{"jsonrpc":"2.0","id":%b,"result":{"content":%b,"structuredContent":%b,"isError":false%b'
_TOO_OLD = "This needs to ask you something first, which takes a client of protocol version 2026-07-28."
_NAME_SHOWN = 128


class Service:
    """Some dialects as one MCP server; `tools="read"` leaves out what writes."""

    def __init__(
        self, dispatch: Dispatch, dialects: Sequence[Dialect], *, version: str, tools: Tools = "all", seal_key: bytes
    ) -> None:
        served = [tool for dialect in dialects for tool in dialect.tools if tools == "all" or tool.mode == "read"]
        offered = pages.capabilities(served, dialects)
        self.plans = {tool.name: _plan(dispatch.tools[tool.name]) for tool in served}
        self._dispatch = dispatch
        self._rounds = Rounds(seal_key)
        self._offers = Offers(dispatch, dialects, self._rounds.turn)
        self._methods = {name: work for name, work in self._offers.methods.items() if METHODS[name].needs in offered}
        self._fixed = {era.name: pages.fixed(era, version, served, dialects) for era in (LEGACY, MODERN)}
        self._ends = {era.name: pages.finish(era, version) for era in (LEGACY, MODERN)}
        self._handshakes = pages.handshakes(version, served, dialects)

    def pace(self, inbound: Inbound) -> Pace:
        """Whether the answer comes at once, after a wait, or after a wait in which the handler may speak."""
        if inbound.plan is not None:
            return inbound.plan.pace
        method = inbound.method
        if method not in self._methods:
            return "now"
        return "talking" if method == "prompts/get" and self._offers.talks(inbound.params.name) else "queued"

    def answer(self, inbound: Inbound) -> Coroutine[Any, Any, bytes]:
        """The response; raises Refused."""
        return self._call(inbound) if inbound.method == "tools/call" else self._other(inbound)

    async def _other(self, inbound: Inbound) -> bytes:
        method = inbound.method
        fixed = self._fixed[inbound.era.name].get(method)
        if fixed is not None:
            if isinstance(inbound.params, envelope.Page) and inbound.params.cursor:
                raise Refused(INVALID_PARAMS, "Unknown cursor")
            return _OPEN % (inbound.id, fixed)
        if method == "initialize" and inbound.era is LEGACY:
            asked: str = inbound.params.protocolVersion
            return _OPEN % (inbound.id, self._handshakes.get(asked) or self._handshakes[COUNTER_OFFER])
        if method not in self._methods:
            raise Refused(METHOD_NOT_FOUND, "Method not found")
        return await self._offer(inbound)

    async def _call(self, inbound: Inbound) -> bytes:
        params: envelope.Call = inbound.params
        if inbound.plan is None:
            raise Refused(INVALID_PARAMS, f"Unknown tool: {params.name[:_NAME_SHOWN]}")
        bound = inbound.plan.bound
        arguments = bytes(params.arguments)
        if arguments[:1] != b"{":
            if arguments not in (b"", b"null"):
                raise Refused(INVALID_PARAMS, "Invalid params: arguments must be an object")
            arguments = b"{}"
        if bound.tool.talk:
            return await self._talk(inbound, bound, arguments)
        reply: Any = await self._dispatch.call(bound, arguments, inbound.actor)
        return self._called(inbound, reply)

    def _called(self, inbound: Inbound, reply: Reply) -> bytes:
        tail = self._ends[inbound.era.name].plain
        found = reply.structured
        if reply.content is not None:
            blocks = reply.content
        else:
            blocks = b'[{"type":"text","text":%b}]' % msgspec.json.encode(reply.body.decode("utf-8", "replace"))
        if reply.fault is not None:
            return _FAILED % (inbound.id, blocks, tail)
        if found is not None and (inbound.era is MODERN or found[:1] == b"{"):
            return _STRUCTURED % (inbound.id, blocks, found, tail)
        return _CALLED % (inbound.id, blocks, tail)

    async def _talk(self, inbound: Inbound, bound: Bound, arguments: bytes) -> bytes:
        belongs = seal.purpose(inbound.actor, inbound.method, bound.tool.name, arguments)
        turn = self._rounds.turn(inbound, bound.dialect.name, belongs)
        reply = await self._dispatch.call(bound, arguments, inbound.actor, turn)
        if isinstance(reply, Reply):
            return self._called(inbound, reply)
        if inbound.era is LEGACY:
            return self._called(inbound, bound.dialect.fail(Fault("disabled", _TOO_OLD)))
        asked = self._asked(inbound, reply, belongs)
        return self._called(inbound, bound.dialect.fail(asked)) if isinstance(asked, Fault) else asked

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


def profiles(make: Callable[[Tools], Service]) -> Callable[[bytes], Service]:
    """The profile a query string asks for, each made when first asked for: `tools=read`, or everything."""
    made = cache(make)
    everything = made("all")

    def choose(query: bytes) -> Service:
        if not query:
            return everything
        return made("read") if parse_qs(query.decode("latin-1")).get("tools") == ["read"] else everything

    return choose


def _plan(bound: Bound) -> Plan:
    tool = bound.tool
    pace = "talking" if tool.talk else "now" if tool.hints.short and tool.mode == "read" else "queued"
    return Plan(bound, pace, mirrored(input_schema(tool)))


def _encoded(inbound: Inbound, result: Object, tail: bytes) -> bytes | Fault:
    """The message, or the Fault of a handler whose result is not JSON."""
    return guard(lambda: _OPEN % (inbound.id, pages.close(result, tail)))


def _refusal(fault: Fault) -> Refused:
    ours = fault.code in ("busy", "storage", "internal")
    return Refused(INTERNAL_ERROR if ours else INVALID_PARAMS, fault.message)

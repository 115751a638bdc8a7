"""From raw arguments to a dialect's reply: decode, transaction, handler, render; the only catch-all stands here."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from kernel.errors import Fault
from kernel.ids import call_id
from kernel.misread import argument_message, decoder, misread
from kernel.security.permissions import WHOLE, Caller, Denied, Needs, Grant, needs, permit
from kernel.store import audit
from kernel.store.context import Origin
from kernel.store.progress import Progress, telling
from kernel.store.queue import Deliver, Job, Merge, Work
from kernel.store.sqlite.connection import world
from kernel.store.sqlite.errors import as_fault
from kernel.store.store import Store
from kernel.tools import Ask, Dialect, First, Reply, Tool, Turn

_log = logging.getLogger("quipu")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ROUNDS = 1000
_NONE: Mapping[str, Any] = MappingProxyType({})
_origin = lru_cache(maxsize=1024)(Origin)  # callers are few and come back with every call


def guard(work: Callable[..., Any], *args: Any) -> Any:
    """`work(*args)`, or the Fault that says why not; whatever is not a Fault or the engine's error is a bug, logged."""
    try:
        return work(*args)
    except Fault as fault:
        return fault
    except Exception as error:
        known = as_fault(error)
        if known is not None:
            _log.warning("call %s: %s: %s", call_id(), type(error).__name__, known.message)
            return known
        _log.exception("call %s failed", call_id())
        return Fault("internal", "Internal error.")


class _Found(NamedTuple):
    """What has to be written before a reading tool can go on, and the texts that will be embedded."""

    what: Any
    texts: Sequence[str]


class Bound(NamedTuple):
    """A tool with its dialect, a decoder for its arguments, and its merged form if it has one.

    `needs` are the rights of its calls. A `short` tool is answered on the event loop, one that goes `stepwise` waits in
    a queue more than once.
    """

    dialect: Dialect
    tool: Tool
    decode: Callable[[Any], Any]
    needs: Needs
    many: Callable[[Any, Sequence[Any]], list[Any]] | None = None
    short: bool = False
    stepwise: bool = False

    def shown(self, reach: Grant) -> bool:
        """Whether something of the tool is in reach, so that it is worth a place in a list."""
        return reach.sees(self.dialect.name) and self.needs.least <= reach.right


class Dispatch:
    """Every tool of the served dialects by name, over one store.

    `rights` is the table of what each tool needs; a call out of its caller's reach raises Denied, and nothing ran.
    """

    def __init__(self, store: Store, dialects: Sequence[Dialect], rights: Mapping[str, Any] = _NONE) -> None:
        self.store = store
        self.dialects = tuple(dialects)
        self.tools: dict[str, Bound] = {}
        for dialect in dialects:
            for tool in dialect.tools:
                if tool.name in self.tools:
                    raise ValueError(f"tool {tool.name} stands in two dialects")
                stepwise = tool.ahead is not None or tool.first is not None
                short = tool.mode == "read" and tool.hints.short and not stepwise
                wanted = needs(rights.get(tool.name))
                decode, many = decoder(tool.request), _many(dialect, tool)
                self.tools[tool.name] = Bound(dialect, tool, decode, wanted, many, short, stepwise)

    def over(self, store: Store) -> "Dispatch":
        """The same tools over another store."""
        other = copy(self)
        other.store = store
        return other

    def now(self, bound: Bound, arguments: Any, caller: Caller, turn: Turn | None = None) -> Reply | Ask:
        """`call` for a short tool, which has nothing to wait for."""
        if caller.reach is not WHOLE:
            self._allow(bound, arguments, caller)
        try:
            request = bound.decode(arguments)
        except _UNREADABLE as error:
            return refused(bound, _unfit(bound, error))
        who = _origin(bound.dialect.name, bound.tool.name, caller.actor)
        answer = self.store.read_now(self._work(bound, request, who, turn), who)
        return refused(bound, answer) if isinstance(answer, Fault) else answer

    async def call(self, bound: Bound, arguments: Any, caller: Caller, turn: Turn | None = None) -> Reply | Ask:
        """Runs one tool on raw JSON `arguments`; the reply is the dialect's, its faults included."""
        if bound.stepwise:
            return await self._stepwise(bound, arguments, caller, turn)
        future: asyncio.Future[Reply | Ask] = asyncio.get_running_loop().create_future()

        def done(reply: Reply | Ask) -> None:
            if not future.done():
                future.set_result(reply)

        started = self.start(bound, arguments, caller, done, turn)
        if not isinstance(started, Job):
            return started
        try:
            return await future
        except asyncio.CancelledError:
            started.cancel()
            raise

    def start(
        self, bound: Bound, arguments: Any, caller: Caller, done: Callable[[Any], None], turn: Turn | None = None
    ) -> Reply | Ask | Job:
        """`call` without a task: the reply where it is known at once, else the job whose reply `done` will get.

        Not for a tool that goes `stepwise`.
        """
        if bound.short:
            return self.now(bound, arguments, caller, turn)
        tool = bound.tool
        if caller.reach is not WHOLE:
            self._allow(bound, arguments, caller)
        try:
            request = bound.decode(arguments)
        except _UNREADABLE as error:
            return refused(bound, _unfit(bound, error))
        who = _origin(bound.dialect.name, tool.name, caller.actor)
        work = self._work(bound, request, who, turn)

        def deliver(job: Job) -> None:
            answer = job.answer
            done(refused(bound, answer) if isinstance(answer, Fault) else answer)

        queued = guard(self._put, bound, request, work, who, deliver)
        return refused(bound, queued) if isinstance(queued, Fault) else queued

    async def read(self, dialect: Dialect, work: Work, caller: Caller) -> Any:
        """`work(tx)` on a reader, for resources, prompts and completion; raises the Fault."""
        answer = await self._queued(partial(self.store.begin_read, work, Origin(dialect.name, "", caller.actor)))
        if isinstance(answer, Fault):
            raise answer
        return answer

    def _put(self, bound: Bound, request: Any, work: Work, who: Origin, deliver: Deliver) -> Job:
        tool = bound.tool
        if tool.mode == "read" or type(request) in tool.reads:
            return self.store.begin_read(work, who, deliver)
        texts = tool.texts(request) if tool.texts else ()
        merge = Merge(bound.many, request) if bound.many else None
        return self.store.begin_write(
            work,
            who,
            deliver,
            texts=texts,
            merge=merge,
            alone=tool.mode == "exclusive",
            noted=True,
            undoable=bool(tool.hints.destructive),
        )

    async def _stepwise(self, bound: Bound, arguments: Any, caller: Caller, turn: Turn | None) -> Reply | Ask:
        tool = bound.tool
        if caller.reach is not WHOLE:
            self._allow(bound, arguments, caller)
        try:
            request = bound.decode(arguments)
        except _UNREADABLE as error:
            return refused(bound, _unfit(bound, error))
        who = _origin(bound.dialect.name, tool.name, caller.actor)
        if tool.ahead is not None:
            request = await self._ahead(tool.ahead, request, who)
        if isinstance(request, Fault):
            return refused(bound, request)
        work = self._work(bound, request, who, turn)
        if tool.first is not None:
            first = tool.first
            if tool.long and turn is not None:
                first = first._replace(write=telling(_progress(turn), first.write))
            answer = await self._read_after(first, request, work, who)
        else:
            answer = await self._queued(partial(self._put, bound, request, work, who))
        return refused(bound, answer) if isinstance(answer, Fault) else answer

    async def _ahead(self, ahead: Callable[..., Any], request: Any, who: Origin) -> Any:
        work = guard(ahead, self.store.world.settings, request)
        if work is None or isinstance(work, Fault):
            return work or request
        return await self._queued(partial(self.store.begin_read, work, who))

    async def _read_after(self, first: First, request: Any, work: Work, who: Origin) -> Any:
        """Reads, writing before it what the check finds; the rounds end even where it finds something every time."""

        def look(tx: Any) -> Any:
            found = first.check(tx, request)
            return work(tx) if found is None else _Found(found, first.texts(found))

        def put(found: _Found, deliver: Deliver) -> Job:
            def write(tx: Any) -> bool:
                return first.write(tx, request, found.what)

            return self.store.begin_write(write, who, deliver, texts=found.texts, alone=True)

        for _ in range(_ROUNDS):
            answer = await self._queued(partial(self.store.begin_read, look, who))
            if not isinstance(answer, _Found):
                return answer
            more = await self._queued(partial(put, answer))
            if more is not True:
                return (
                    more if isinstance(more, Fault) else await self._queued(partial(self.store.begin_read, work, who))
                )
        return Fault("busy", "What is being read changes all the time, try again.")

    async def _queued(self, put: Callable[[Deliver], Job]) -> Any:
        """The answer of the job that `put` queues, a Fault included; cancelled with the task that waits."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def deliver(job: Job) -> None:
            if not future.done():
                future.set_result(job.answer)

        job = guard(put, deliver)
        if isinstance(job, Fault):
            return job
        try:
            return await future
        except asyncio.CancelledError:
            job.cancel()
            raise

    def _work(self, bound: Bound, request: Any, who: Origin, turn: Turn | None) -> Callable[[Any], Reply | Ask]:
        tool = bound.tool
        if tool.follow is None and not tool.audited:
            return _work(bound, request, turn)

        def read(tx: Any) -> Reply:
            result = tool.handler(tx, request)
            reply = world(tx).engine.fit(bound.dialect.reply(tool, result))
            for work in _left_behind(tool, request, result):
                self.store.write_later(work, who)
            return reply

        return read

    def _allow(self, bound: Bound, arguments: Any, caller: Caller) -> None:
        try:
            _permit(bound, arguments, caller)
        except Denied:
            refusal = partial(audit.note, outcome="denied")
            self.store.write_later(refusal, _origin(bound.dialect.name, bound.tool.name, caller.actor))
            raise


def _left_behind(tool: Tool, request: Any, result: Any) -> list[Work]:
    left: list[Work] = [audit.note] if tool.audited else []
    if (follow := tool.follow) is not None:
        left.append(lambda tx: follow(tx, request, result))
    return left


def _permit(bound: Bound, arguments: Any, caller: Caller) -> None:
    reach = caller.reach
    if reach.dialects and bound.dialect.name not in reach.dialects:
        raise Denied(bound.tool.name, None)
    if reach.right < bound.needs.most:
        permit(bound.tool.name, bound.needs, bound.decode, arguments, reach.right)


def refused(bound: Bound, fault: Fault) -> Reply:
    """The dialect's reply to a call of this tool that failed."""
    fault.tool = bound.tool.name
    return bound.dialect.fail(fault)


def _unfit(bound: Bound, error: Exception) -> Fault:
    put = bound.dialect.misread
    return Fault("invalid", argument_message(error)) if put is None else guard(put, misread(bound.tool, error))


def _work(bound: Bound, request: Any, turn: Turn | None) -> Callable[[Any], Reply | Ask]:
    handler, tool, reply = bound.tool.handler, bound.tool, bound.dialect.reply
    if tool.talk:

        def talk(tx: Any) -> Reply | Ask:
            result = handler(tx, request, turn)
            return result if isinstance(result, Ask) else world(tx).engine.fit(reply(tool, result))

        return talk
    if tool.long and turn is not None:
        handler = telling(_progress(turn), handler)
    return lambda tx: world(tx).engine.fit(reply(tool, handler(tx, request)))


def _progress(turn: Turn) -> Progress:
    return Progress(lambda done, total: turn.progress(done, total, None))


def _many(dialect: Dialect, tool: Tool) -> Callable[[Any, Sequence[Any]], list[Any]] | None:
    many, reply = tool.many, dialect.reply
    if many is None:
        return None

    def work(tx: Any, requests: Sequence[Any]) -> list[Any]:
        return [result if isinstance(result, Fault) else reply(tool, result) for result in many(tx, requests)]

    return work

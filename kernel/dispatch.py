"""From raw arguments to a dialect's reply: decode, transaction, handler, render; the only catch-all stands here."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kernel.errors import Fault
from kernel.ids import call_id
from kernel.lanes import Job, Store
from kernel.store import Origin, as_fault
from kernel.tools import Ask, Dialect, Prompt, Reply, Tool, Turn

_log = logging.getLogger("quipu")
_INLINE_LETTERS = 8192


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


class Bound(NamedTuple):
    """A tool with its dialect and a decoder for its arguments."""

    dialect: Dialect
    tool: Tool
    decode: Callable[[Any], Any]


class Dispatch:
    """Every tool of the served dialects by name, over one store."""

    def __init__(self, store: Store, dialects: Sequence[Dialect]) -> None:
        self.store = store
        self.dialects = tuple(dialects)
        self.tools: dict[str, Bound] = {}
        for dialect in dialects:
            for tool in dialect.tools:
                if tool.name in self.tools:
                    raise ValueError(f"tool {tool.name} stands in two dialects")
                self.tools[tool.name] = Bound(dialect, tool, msgspec.json.Decoder(tool.request).decode)

    async def call(self, bound: Bound, arguments: Any, actor: str, turn: Turn | None = None) -> Reply | Ask:
        """Runs one tool on raw JSON `arguments`; the reply is the dialect's, its faults included."""
        dialect, tool, decode = bound
        try:
            request = decode(arguments)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return dialect.fail(Fault("invalid", argument_message(error)))
        who = Origin(dialect.name, tool.name, actor)
        work = _work(bound, request, turn)
        if tool.mode == "read":
            if tool.hints.short:
                answer = self.store.read_now(work, who)
            else:
                answer = await self._queued(lambda: self.store.read(work, who))
        else:
            vectors = await self._vectors(tool, request, who)
            alone = tool.mode == "exclusive"
            answer = await self._queued(lambda: self.store.write(work, who, vectors, alone=alone))
        return dialect.fail(answer) if isinstance(answer, Fault) else answer

    async def read(self, dialect: Dialect, work: Callable[[Any], Any], actor: str) -> Any:
        """`work(tx)` on a reader, for resources, prompts and completion; raises the Fault."""
        who = Origin(dialect.name, "", actor)
        answer = await self._queued(lambda: self.store.read(work, who))
        if isinstance(answer, Fault):
            raise answer
        return answer

    async def prompt(
        self, dialect: Dialect, prompt: Prompt, arguments: Mapping[str, str], actor: str, turn: Turn | None = None
    ) -> Any:
        """The messages of a prompt, or an Ask; raises the Fault."""
        extra = (turn,) if prompt.talk else ()
        return await self.read(dialect, lambda tx: prompt.handler(tx, arguments, *extra), actor)

    async def _vectors(self, tool: Tool, request: Any, who: Origin) -> Mapping[str, Any] | None:
        """Embeddings computed before the writer takes its lock: short texts here, long ones on a reader thread."""
        embedder = self.store.world.embedder
        if tool.texts is None or embedder is None:
            return None
        texts = tool.texts(request)
        if embedder.ready and sum(map(len, texts)) <= _INLINE_LETTERS:
            found = guard(embedder.embed, texts)
        else:
            found = await self._queued(lambda: self.store.read(lambda tx: tx.embed(texts), who))
        return None if isinstance(found, Fault) else dict(zip(texts, found, strict=True))

    async def _queued(self, put: Callable[[], tuple[Job, Awaitable[Any]]]) -> Any:
        queued = guard(put)
        if isinstance(queued, Fault):
            return queued
        job, future = queued
        try:
            return await future
        except asyncio.CancelledError:
            job.cancel()
            raise


def argument_message(error: Exception) -> str:
    """What is wrong with the arguments, in words that name the field."""
    if isinstance(error, msgspec.ValidationError):
        text = (
            str(error).replace("`$.", "`").replace("Object missing", "Missing").replace("Object contains", "Contains")
        )
        return f"Invalid arguments: {text[:1].lower()}{text[1:]}"
    return "Invalid arguments: not valid JSON"


def _work(bound: Bound, request: Any, turn: Turn | None) -> Callable[[Any], Reply | Ask]:
    handler, tool, reply = bound.tool.handler, bound.tool, bound.dialect.reply
    if tool.talk:

        def talk(tx: Any) -> Reply | Ask:
            result = handler(tx, request, turn)
            return result if isinstance(result, Ask) else reply(tool, result)

        return talk
    return lambda tx: reply(tool, handler(tx, request))

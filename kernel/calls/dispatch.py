"""From raw arguments to a dialect's reply: decode, transaction, handler, render; here is the only catch-all.

A retried write is not a second write: its answer is kept for a day under the key that the client gave the call. The key
is the `Idempotency-Key` header of draft-ietf-httpapi-idempotency-key-header, or `idempotencyKey` in the `_meta` of an
MCP request. It is committed with the write: a call whose answer was lost is answered again, and not run again.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from copy import copy
from datetime import timedelta
from functools import cached_property, lru_cache, partial
from types import GeneratorType
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Struct

from kernel.calls.arguments import UNREADABLE, decode_again
from kernel.calls.dialect import Dialect
from kernel.calls.tools import Batch, Found, InputRequired, Interaction, Precheck, Prepare, Reply, Request, Result, Tool
from kernel.core.errors import Args, Fault, unless_fault
from kernel.core.ids import call_id, current_call
from kernel.core.lazy_regex import regex
from kernel.core.text import RawJson, json_decoder
from kernel.core.times import later
from kernel.engines.sqlite.errors import as_fault
from kernel.search import documents
from kernel.security.permissions import FULL_ACCESS, Caller, Forbidden, Grant, check_permission, required_permission
from kernel.store import audit
from kernel.store.context import CallContext
from kernel.store.long_work import CALL_SLICE_SECONDS, MORE, Progress, Slices, Steps, Unfinished, with_progress
from kernel.store.queue import Deliver, Job, Merge, Work, current_stages
from kernel.store.store import Store
from kernel.store.transaction import Target, Tx

Answer = Reply | InputRequired
Done = Callable[[Answer], None]
# An observer returns this for a call that begins; it gets the outcome, the seconds it took, and the answer if any.
OnOutcome = Callable[[str, float, Answer | None], None]
Observer = Callable[["Call"], OnOutcome]
AfterRead = Callable[[Tx, Result], None]  # a write after a read, with the result of the read

_clock = time.perf_counter


class ToolEntry:
    """A tool with its dialect, and its batch form, if any.

    `required` is the permission its calls need. A `short` tool is answered on the event loop; the calls of a `stepwise`
    one are queued more than once. `observers` are notified of its calls, as those of the dispatch.
    """

    def __init__(self, dialect: Dialect, tool: Tool) -> None:
        self.dialect = dialect
        self.tool = tool
        self.required = required_permission(tool.permission)
        self.observers: tuple[Observer, ...] = ()
        self.batch = _batch(dialect, tool)
        self.stepwise = tool.hooks.prepare is not None or tool.hooks.precheck is not None
        self.short = tool.mode == "read" and tool.hints.short and not self.stepwise

    @cached_property
    def decode(self) -> Callable[[RawJson], Request]:
        """Decodes arguments; the decoder is built at its first use, to keep startup short."""
        return json_decoder(self.tool.request)

    def visible_to(self, grant: Grant) -> bool:
        """Return whether the grant allows at least one action of the tool, so that lists show it."""
        return grant.allows_dialect(self.dialect.name) and self.required.least <= grant.permission


def following(tool: Tool, dialects: Sequence[Dialect]) -> Tool:
    """Return the tool with the `follow` of these dialects as its precheck, unless it has its own."""
    follows = [dialect.files.follow for dialect in dialects if dialect.files.follow is not None]
    if not follows or tool.hooks.precheck is not None:
        return tool

    def check(tx: Tx, request: Request) -> Found:
        pairs = [(follow, follow.check(tx, request)) for follow in follows]
        return [pair for pair in pairs if pair[1] is not None] or None

    def write(tx: Tx, request: Request, pairs: Found) -> bool:
        more = [follow.write(tx, request, changes) for follow, changes in pairs]
        return any(more)

    def texts(pairs: Found) -> list[str]:
        return [text for follow, changes in pairs for text in follow.texts(changes)]

    return tool._replace(hooks=tool.hooks._replace(precheck=Precheck(check, write, texts)))


class Call(Struct, frozen=True):
    """One call of a tool: its raw JSON arguments, its caller, and the interaction of an interactive tool."""

    entry: ToolEntry
    arguments: RawJson
    caller: Caller
    interaction: Interaction | None = None


class Pending(Struct, frozen=True):
    """A call under way; `cancel()` drops it if it has not started, and interrupts a read."""

    cancel: Callable[[], object]


NOT_CANCELLABLE = Pending(lambda: None)  # a call that goes on although its connection is lost


class NeedsWrite(NamedTuple):
    """The result of a precheck, to be written before the read, and the texts that will be embedded."""

    found: Found
    texts: Sequence[str]


class CheckedRead(NamedTuple):
    """A read with its precheck, of a call of `size` bytes."""

    precheck: Precheck
    request: Request
    work: Work
    size: int

    def check_and_read(self, tx: Tx) -> Any:
        finding = self.precheck.check(tx, self.request)
        return self.work(tx) if finding is None else NeedsWrite(finding, self.precheck.texts(finding))


def outcome_of(answer: Answer) -> str:
    """Return `ok`, `asked` for input required from the client, or the code of the fault."""
    return "asked" if isinstance(answer, InputRequired) else answer.fault or "ok"


def fail(entry: ToolEntry, fault: Fault) -> Reply:
    fault.tool = entry.tool.name
    return entry.dialect.fail(fault)


def _batch(dialect: Dialect, tool: Tool) -> Batch | None:
    batch, reply = tool.hooks.batch, dialect.reply
    if batch is None:
        return None

    def work(tx: Tx, requests: Sequence[Request]) -> list[Reply | Fault]:
        results = batch(tx, requests)
        return [result if isinstance(result, Fault) else reply(tool, result) for result in results]

    return work


def reporting(observers: Sequence[Observer], call: Call) -> Callable[[Answer | str], None]:
    """Starts the observers of a call; returns the function that reports its answer or outcome, at most once."""
    reports = [observer(call) for observer in observers]
    start = _clock()

    def report(result: Answer | str) -> None:
        outcome, answer = (result, None) if isinstance(result, str) else (outcome_of(result), result)
        seconds = _clock() - start
        while reports:
            reports.pop(0)(outcome, seconds, answer)

    return report


def check_grant(call: Call, request: Request | Fault) -> None:
    """Raises Forbidden if the caller's grant does not allow the call, whose arguments were decoded as `request`."""
    entry, grant = call.entry, call.caller.grant
    if grant.dialects and entry.dialect.name not in grant.dialects:
        wider = "for every dialect" if entry.dialect.reads_all_dialects else f"for {entry.dialect.name}"
        own = ", ".join(sorted(grant.dialects))
        raise Forbidden(entry.tool.name, None, f"this key is for {own} alone, {entry.tool.name} takes a key {wider}")
    if grant.permission < entry.required.most:
        valid = None if isinstance(request, Fault) else request
        check_permission(entry.tool.name, entry.required, valid, call.arguments, grant.permission)


def handler_work(entry: ToolEntry, request: Request, interaction: Interaction | None, grant: Grant) -> Work:
    """Return the work of a call: its handler, and the rendered reply within the limit of an answer."""
    handler, tool, reply = entry.tool.handler, entry.tool, entry.dialect.reply
    arguments = (request, interaction) if tool.interactive else (request,)
    slices: Slices[Result] | None = None

    def work(tx: Tx) -> Answer | Unfinished:
        nonlocal slices
        try:
            result = slices(tx) if slices else handler(tx, *arguments)
        except Fault as fault:
            raise naming_owner(tx, fault, entry.dialect.name, request, grant) from None
        if isinstance(result, GeneratorType):  # steps of work that is still to be done
            slices = Slices(cast("Steps[Result]", result), seconds=CALL_SLICE_SECONDS)
            result = slices(tx)
        if result is MORE or isinstance(result, InputRequired):
            return result
        return checked_size(tx, reply(tool, result))

    return with_progress(progress_of(interaction), work) if tool.long and interaction is not None else work


def naming_owner(tx: Tx, fault: Fault, dialect: str, request: Request, grant: Grant) -> Fault:
    """Return a fault; that of an unknown id says which dialect has it, if the grant allows that dialect."""
    if fault.code != "not_found":
        return fault
    values = (getattr(request, name) for name in request.__struct_fields__)
    ids = [value for value in values if isinstance(value, str) and value in fault.message and _ID.fullmatch(value)]
    for id_ in ids:
        for document in documents.with_id(tx, id_, sorted(grant.dialects or tx.context.dialects)):
            owner, key = document.space.partition(":")[0], document.key
            whole = f"{document.space}/{key}"
            if owner != dialect:
                way = f"tools of {owner} take {key}" if grant.dialects else f'recall {{"ids": ["{whole}"]}} reads it'
                return Fault(fault.code, f"{fault.message}; {owner} has it: {way}", fault.label, fault.context)
            if id_ == whole and _TOLD not in fault.message:
                return Fault(fault.code, f"{fault.message}{_TOLD}{key}", fault.label, fault.context)
    return fault


def checked_size(tx: Tx, reply: Reply) -> Reply:
    """Return the reply; raises Fault("invalid") if its body exceeds the limit of an answer."""
    limit = tx.context.call_limits.answer
    if len(reply.body) > limit:
        raise Fault("invalid", f"The answer would be larger than {limit} bytes, ask for less.")
    return reply


def after_read_writes(tool: Tool, request: Request) -> list[AfterRead]:
    writes: list[AfterRead] = [lambda tx, _result: audit.record(tx)] if tool.audited else []
    if (after_read := tool.hooks.after_read) is not None:
        writes.append(lambda tx, result: after_read(tx, request, result))
    return writes


def progress_of(interaction: Interaction) -> Progress:
    return Progress(lambda done, total: interaction.progress(done, total, None))


def with_call_id(id_: str, work: Work) -> Work:
    """Return the same work, on any thread, with its unexpected errors logged under this id."""

    def named(tx: Tx) -> Answer:
        current_call.set(id_)
        try:
            answer = work(tx)
        except Fault:
            current_call.set("")
            raise
        current_call.set("")
        return answer

    return named


_TOLD = ": its id is "
_ID = regex(r"[^\W_]{1,32}[_:/][\w:./-]{1,199}")  # one or the other of a dialect, or that of a recall
IDEMPOTENCY_KEY = b"idempotency-key"
_KEPT = timedelta(hours=24)
_LONGEST = 255
_EXPIRED_ROWS = 64  # deleted in one transaction
_OTHER = "Idempotency-Key: this key was used for another call in the last 24 hours. Use a new key for a new call."
_WRONG = f"Idempotency-Key: must have 1 to {_LONGEST} printable ASCII characters."

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Reply).decode


def with_idempotency_key(caller: Caller, key: str | bytes | None) -> Caller:
    """Return the caller of a call that has a key for retries; a header may have it in quotes."""
    if key is None:
        return caller
    text = key.decode("latin-1") if isinstance(key, bytes) else key
    return msgspec.structs.replace(caller, idempotency_key=text.strip().removeprefix('"').removesuffix('"'))


def once(work: Work, tool: str, request: Request, caller: str, key: str) -> Work:
    """Return the work of a write that runs once for a key; raises Fault("conflict") if the key is that of another call.

    A refused call keeps nothing, so that it can be repeated. `caller` is the id of an API key, empty without.
    """
    digest = hashlib.sha256(b"%b %b" % (tool.encode(), msgspec.json.encode(request, order="deterministic"))).hexdigest()

    def keyed(tx: Tx) -> Answer | Unfinished:
        if not (key.isascii() and key.isprintable() and 0 < len(key) <= _LONGEST):
            raise Fault("invalid", _WRONG)
        before = later(tx.now, -_KEPT)
        for kept_digest, kept_answer in tx.rows("kernel.dispatch.kept", caller=caller, key=key, after=before):
            if kept_digest != digest:
                raise Fault("conflict", _OTHER)
            return _decode(kept_answer)
        answer = work(tx)
        if isinstance(answer, Reply):
            tx.run("kernel.dispatch.expire", before=before, limit=_EXPIRED_ROWS)
            row = {"caller": caller, "key": key, "digest": digest, "targets": tx.touched[1], "answer": _encode(answer)}
            tx.run("kernel.dispatch.keep", now=tx.now, **row)
        return answer

    return keyed


def first_targets(tx: Tx, caller: Caller) -> list[Target]:
    """Return the first memories that the call with this key touched, now or when it was first answered."""
    targets = tx.one("kernel.dispatch.targets", str, caller=caller.key, key=caller.idempotency_key)
    return [] if targets is None else msgspec.json.decode(targets, type=list[Target])


R = TypeVar("R")

_log = logging.getLogger("quipu")
_UNWRITTEN = ("storage", "disabled")  # the disk refuses it, or the server only reads: a read answers without it
_PRECHECK_ROUNDS = 1000  # a folder that changes all the time must not keep a read waiting for ever
_context = lru_cache(maxsize=1024)(CallContext)  # the same few callers and tools come with every call


def catch_faults(work: Callable[[*Args], R], *args: *Args) -> R | Fault:
    """Return `work(*args)`, or the Fault it raised; any error that is neither a Fault nor SQLite's is logged
    as a bug.
    """
    try:
        return work(*args)
    except Fault as fault:
        return fault
    except Exception as error:
        fault = as_fault(error)
        if fault is not None:
            _log.warning("call %s: %s: %s", call_id(), type(error).__name__, fault.message)
            return fault
        _log.exception("call %s failed", call_id())
        return Fault("internal", "Internal error.")


class Dispatch:
    """Every tool of the served dialects by name, over one store.

    A call that its caller has no permission for raises Forbidden before anything runs. `observers` are notified of each
    call and its outcome; a call that is cancelled in a queue is not reported, since it never ran.
    """

    def __init__(self, store: Store, dialects: Sequence[Dialect], observers: Sequence[Observer] = ()) -> None:
        self.store = store
        self.dialects = tuple(dialects)
        self.observers = list(observers)  # one list for all stores
        self.tools: dict[str, ToolEntry] = {}
        self._unlisted: dict[str, ToolEntry] = {}
        for dialect in dialects:
            for tool in (*dialect.memories.curating, *(method.tool for method in dialect.rest)):
                self._unlisted[tool.name] = ToolEntry(dialect, tool)
            for tool in dialect.tools:
                if tool.name in self.tools:
                    raise ValueError(f"tool {tool.name} stands in two dialects")
                follows = dialect.reads_all_dialects and tool.mode == "read"
                self.tools[tool.name] = ToolEntry(dialect, following(tool, dialects) if follows else tool)

    def entry(self, name: str) -> ToolEntry | None:
        return self.tools.get(name) or self._unlisted.get(name)

    def over(self, store: Store) -> "Dispatch":
        dispatch = copy(self)
        dispatch.store = store
        return dispatch

    def submit(self, call: Call, on_done: Done) -> Answer | Pending:
        """Runs one call: returns the answer if it is ready, else Pending, and `on_done` gets the answer on this loop.

        The answer is the dialect's, its faults included. Raises Forbidden.
        """
        if not (self.observers or call.entry.observers):
            return self._submit(call, on_done)
        report = reporting((*self.observers, *call.entry.observers), call)

        def observed(answer: Answer) -> None:
            report(answer)
            on_done(answer)

        try:
            answer = self._submit(call, observed)
        except Forbidden:
            report("denied")
            raise
        finally:
            current_call.set("")
            current_stages.set(None)
        if not isinstance(answer, Pending):
            report(answer)
        elif call.entry.stepwise:
            return Pending(lambda: (answer.cancel(), report("cancelled")))
        return answer

    async def call(
        self, entry: ToolEntry, arguments: RawJson, caller: Caller, interaction: Interaction | None = None
    ) -> Answer:
        """Return `submit`, awaited; a task that is cancelled cancels its call."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def on_done(answer: Answer) -> None:
            if not future.done():
                future.set_result(answer)

        answer = self.submit(Call(entry, arguments, caller, interaction), on_done)
        if not isinstance(answer, Pending):
            return answer
        try:
            return await future
        except asyncio.CancelledError:
            answer.cancel()
            raise

    async def read(self, dialect: Dialect, work: Callable[[Tx], R], caller: Caller) -> R:
        """Return `work(tx)` on a reader, for resources, prompts and completion; raises the Fault."""
        context = CallContext(dialect.name, "", caller.actor, reach=caller.grant.reach)
        return unless_fault(await self._queued(partial(self.store.begin_read, work, context)))

    def _submit(self, call: Call, on_done: Done) -> Answer | Pending:
        entry, caller = call.entry, call.caller
        try:
            request = entry.decode(call.arguments)
        except (*UNREADABLE, MemoryError) as error:
            request = catch_faults(
                decode_again, entry.tool, entry.decode, call.arguments, error, entry.dialect.argument_fault
            )
        if caller.grant is not FULL_ACCESS:
            self._check_permission(call, request)
        if isinstance(request, Fault):
            return fail(entry, request)
        context = _context(entry.dialect.name, entry.tool.name, caller.actor, caller.key, caller.grant.reach)
        hooks = entry.tool.hooks
        precheck = hooks.precheck
        if entry.stepwise and (precheck is None or hooks.prepare is not None or call.interaction is not None):
            return _finish_task(entry, self._stepwise(call, request, context), on_done)
        work = self._work(call, request, context)
        if precheck is not None:
            return self._begin_checked_read(
                entry, CheckedRead(precheck, request, work, len(call.arguments)), context, on_done
            )
        if self._runs_here(entry):
            answer = self.store.read_now(work, context)
            return fail(entry, answer) if isinstance(answer, Fault) else answer

        def deliver(job: Job) -> None:
            answer = job.answer
            on_done(fail(entry, answer) if isinstance(answer, Fault) else answer)

        job = catch_faults(self._enqueue, call, request, work, context, deliver)
        return fail(entry, job) if isinstance(job, Fault) else Pending(job.cancel)

    def _enqueue(self, call: Call, request: Request, work: Work, context: CallContext, deliver: Deliver) -> Job:
        entry, tool = call.entry, call.entry.tool
        if tool.mode == "read" or type(request) in tool.read_arms:
            return self.store.begin_read(work, context, deliver, size=len(call.arguments))
        texts = tool.hooks.texts
        return self.store.begin_write(
            work,
            context,
            deliver,
            texts=partial(texts, request) if texts else (),
            merge=Merge(entry.batch, request) if entry.batch and _merges(call.caller) else None,
            exclusive=tool.mode == "exclusive",
            audited=True,
            undoable=tool.hints.destructive or type(request) in tool.kept_arms,
            size=len(call.arguments),
        )

    async def _stepwise(self, call: Call, request: Request, context: CallContext) -> Answer:
        """Runs a call with a prepare or precheck hook; its steps are queued one after another."""
        entry, tool, interaction = call.entry, call.entry.tool, call.interaction
        prepare, precheck = tool.hooks.prepare, tool.hooks.precheck
        if prepare is not None:
            request = await self._prepared(prepare, request, context)
        if isinstance(request, Fault):
            return fail(entry, request)
        work = self._work(call, request, context)
        if precheck is not None:
            if tool.long and interaction is not None:
                precheck = precheck._replace(write=with_progress(progress_of(interaction), precheck.write))
            answer = await self._checked_read(CheckedRead(precheck, request, work, len(call.arguments)), context)
        else:
            answer = await self._queued(partial(self._enqueue, call, request, work, context))
        return fail(entry, answer) if isinstance(answer, Fault) else answer

    async def _prepared(self, prepare: Prepare, request: Request, context: CallContext) -> Request:
        work = catch_faults(prepare, self.store.context.settings, request)
        if work is None or isinstance(work, Fault):
            return work or request
        return await self._queued(partial(self.store.begin_read, work, context))

    def _begin_checked_read(
        self, entry: ToolEntry, checked: CheckedRead, context: CallContext, on_done: Done
    ) -> Answer | Pending:
        """Return `_checked_read` that takes a task only if there is something to write."""
        under_way: list[Pending] = []

        def deliver(job: Job) -> None:
            answer = job.answer
            if job.cancelled:
                return
            if isinstance(answer, NeedsWrite):
                under_way.append(_finish_task(entry, self._checked_read(checked, context, answer), on_done))
            else:
                on_done(fail(entry, answer) if isinstance(answer, Fault) else answer)

        def cancel() -> object:
            return under_way[-1].cancel()

        begin = partial(self.store.begin_read, size=checked.size)
        job = catch_faults(begin, checked.check_and_read, context, deliver)
        if isinstance(job, Fault):
            return fail(entry, job)
        under_way.append(Pending(job.cancel))
        return Pending(cancel)

    async def _checked_read(self, checked: CheckedRead, context: CallContext, answer: Any = None) -> Any:
        """Return the answer of a read, after the write of its precheck; the number of rounds is limited.

        `answer` is that of the first round, if it has run.
        """

        def begin_write(needs: NeedsWrite, deliver: Deliver) -> Job:
            def write(tx: Tx) -> bool:
                return checked.precheck.write(tx, checked.request, needs.found)

            # What the call saw in files is no write of its key.
            own_context = context._replace(reach=None)
            return self.store.begin_write(
                write, own_context, deliver, texts=needs.texts, exclusive=True, size=checked.size
            )

        begin_read = partial(self.store.begin_read, size=checked.size)
        for _ in range(_PRECHECK_ROUNDS):
            if answer is None:
                answer = await self._queued(partial(begin_read, checked.check_and_read, context))
            if not isinstance(answer, NeedsWrite):
                return answer
            again = await self._queued(partial(begin_write, answer))
            if isinstance(again, Fault) and (checked.precheck.required or again.code not in _UNWRITTEN):
                return again
            if again is not True:
                return await self._queued(partial(begin_read, checked.work, context))
            answer = None
        return Fault("busy", "What is being read changes all the time, try again.")

    async def _queued(self, put: Callable[[Deliver], Job]) -> Any:
        """Return the answer of the job that `put` queues, a Fault included; cancelled with the awaiting task."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def deliver(job: Job) -> None:
            if not future.done():
                future.set_result(job.answer)

        job = catch_faults(put, deliver)
        if isinstance(job, Fault):
            return job
        try:
            return await future
        except asyncio.CancelledError:
            job.cancel()
            raise

    def _work(self, call: Call, request: Request, context: CallContext) -> Work:
        """Return the work of the transaction: the handler, its rendered reply, and the queueing of writes after a
        read.
        """
        entry, tool, caller = call.entry, call.entry.tool, call.caller
        work = handler_work(entry, request, call.interaction, call.caller.grant)
        writes = after_read_writes(tool, request)
        if writes:
            work = self._with_writes_after(entry, request, context, writes)
        if caller.idempotency_key is not None and tool.mode != "read" and type(request) not in tool.read_arms:
            work = once(work, tool.name, request, caller.key, caller.idempotency_key)
        id_ = "" if self._runs_here(entry) else current_call.get()  # which this thread has anyway
        return with_call_id(id_, work) if id_ else work

    def _runs_here(self, entry: ToolEntry) -> bool:
        return entry.short and not self.store.is_remote  # which may keep this thread waiting

    def _with_writes_after(
        self, entry: ToolEntry, request: Request, context: CallContext, writes: Sequence[AfterRead]
    ) -> Callable[[Tx], Answer]:
        tool, reply = entry.tool, entry.dialect.reply

        def read(tx: Tx) -> Reply:
            result = tool.handler(tx, request)
            answer = checked_size(tx, reply(tool, result))
            for write in writes:
                self.store.write_later(lambda tx, write=write: write(tx, result), context)
            return answer

        return read

    def _check_permission(self, call: Call, request: Request | Fault) -> None:
        try:
            check_grant(call, request)
        except Forbidden:
            entry = call.entry
            context = _context(entry.dialect.name, entry.tool.name, call.caller.actor)
            self.store.write_later(partial(audit.record, outcome="denied"), context)
            raise


def _merges(caller: Caller) -> bool:
    """Return whether a call may share statements with those of others."""
    return caller.idempotency_key is None and caller.grant.reach is None


def _finish_task(entry: ToolEntry, work: Coroutine[None, None, Answer], on_done: Done) -> Pending:
    task = asyncio.ensure_future(work)

    def finished(task: asyncio.Task[Answer]) -> None:
        if not task.cancelled():
            answer = catch_faults(task.result)
            on_done(fail(entry, answer) if isinstance(answer, Fault) else answer)

    task.add_done_callback(finished)
    return Pending(task.cancel)

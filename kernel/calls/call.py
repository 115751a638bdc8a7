"""One call of a tool: its entry, its caller, its work in the transaction, and the report of its outcome."""

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from kernel.calls.dialect import Dialect
from kernel.calls.tools import Batch, Found, InputRequired, Interaction, Precheck, Reply, Request, Result, Tool
from kernel.core.errors import Fault
from kernel.core.ids import current_call
from kernel.core.text import RawJson, json_decoder
from kernel.security.permissions import (
    Caller,
    Forbidden,
    Grant,
    check_permission,
    required_permission,
)
from kernel.store import audit
from kernel.store.long_work import CALL_SLICE_SECONDS, MORE, Progress, Slices, Unfinished, is_steps, with_progress
from kernel.store.queue import Work
from kernel.store.transaction import Tx

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


class Call(NamedTuple):
    """One call of a tool: its raw JSON arguments, its caller, and the interaction of an interactive tool."""

    entry: ToolEntry
    arguments: RawJson
    caller: Caller
    interaction: Interaction | None = None


class Pending(NamedTuple):
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
    """Return the dialect's reply to a failed call of this tool."""
    fault.tool = entry.tool.name
    return entry.dialect.fail(fault)


def _batch(dialect: Dialect, tool: Tool) -> Batch | None:
    """Return the tool's batch hook, with rendered replies instead of results."""
    batch, reply = tool.hooks.batch, dialect.reply
    if batch is None:
        return None

    def work(tx: Tx, requests: Sequence[Request]) -> list[Reply | Fault]:
        return [result if isinstance(result, Fault) else reply(tool, result) for result in batch(tx, requests)]

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


def handler_work(entry: ToolEntry, request: Request, interaction: Interaction | None) -> Work:
    """Return the work of a call: its handler, and the rendered reply within the limit of an answer."""
    handler, tool, reply = entry.tool.handler, entry.tool, entry.dialect.reply
    arguments = (request, interaction) if tool.interactive else (request,)
    slices: Slices[Result] | None = None

    def work(tx: Tx) -> Answer | Unfinished:
        nonlocal slices
        result = slices(tx) if slices else handler(tx, *arguments)
        if is_steps(result):
            slices = Slices(result, seconds=CALL_SLICE_SECONDS)
            result = slices(tx)
        if result is MORE or isinstance(result, InputRequired):
            return result
        return checked_size(tx, reply(tool, result))

    return with_progress(progress_of(interaction), work) if tool.long and interaction is not None else work


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

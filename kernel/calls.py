"""One call of a tool: its entry, its caller, its work in the transaction, and the report of its outcome."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from kernel.errors import Fault
from kernel.ids import calling
from kernel.schema import decoder
from kernel.security.permissions import (
    Caller,
    Forbidden,
    Grant,
    RequiredPermission,
    check_permission,
    required_permission,
)
from kernel.store import audit
from kernel.store.progress import Progress, with_progress
from kernel.store.queue import Work
from kernel.store.transaction import Tx
from kernel.tools import Dialect, InputRequired, Interaction, Reply, Tool

Answer = Reply | InputRequired
Done = Callable[[Answer], None]
# What an observer gives for a call that begins; it gets the outcome, `ok` or why not, and the seconds it took.
OnOutcome = Callable[[str, float], None]
Observer = Callable[["ToolEntry", Caller], OnOutcome]

_clock = time.perf_counter


class ToolEntry(NamedTuple):
    """A tool with its dialect, the decoder of its arguments, and its batch form if it has one.

    `required` is the permission its calls need. A `short` tool is answered on the event loop; a `stepwise` one waits in
    a queue more than once.
    """

    dialect: Dialect
    tool: Tool
    decode: Callable[[Any], Any]
    required: RequiredPermission
    batch: Callable[[Tx, Sequence[Any]], list[Any]] | None = None
    short: bool = False
    stepwise: bool = False

    def visible_to(self, grant: Grant) -> bool:
        """Whether the grant allows at least one action of the tool, so that it is worth a place in a list."""
        return grant.allows_dialect(self.dialect.name) and self.required.least <= grant.permission


class Call(NamedTuple):
    """One call of a tool: its raw JSON arguments, who calls, and the interaction of an interactive tool."""

    entry: ToolEntry
    arguments: bytes | bytearray | memoryview | msgspec.Raw
    caller: Caller
    interaction: Interaction | None = None


class Pending(NamedTuple):
    """A call under way; `cancel()` drops it if it has not begun, and interrupts a read."""

    cancel: Callable[[], object]


def outcome_of(answer: Answer) -> str:
    """`ok`, `asked` where the client has to answer first, or the code of the fault."""
    return "asked" if isinstance(answer, InputRequired) else answer.fault or "ok"


def fail(entry: ToolEntry, fault: Fault) -> Reply:
    """The dialect's reply to a call of this tool that failed."""
    fault.tool = entry.tool.name
    return entry.dialect.fail(fault)


def tool_entry(dialect: Dialect, tool: Tool) -> ToolEntry:
    stepwise = tool.hooks.prepare is not None or tool.hooks.precheck is not None
    short = tool.mode == "read" and tool.hints.short and not stepwise
    required = required_permission(tool.permission)
    return ToolEntry(dialect, tool, decoder(tool.request), required, _batch(dialect, tool), short, stepwise)


def _batch(dialect: Dialect, tool: Tool) -> Callable[[Tx, Sequence[Any]], list[Any]] | None:
    batch, reply = tool.hooks.batch, dialect.reply
    if batch is None:
        return None

    def work(tx: Tx, requests: Sequence[Any]) -> list[Any]:
        return [result if isinstance(result, Fault) else reply(tool, result) for result in batch(tx, requests)]

    return work


def reporting(observers: Sequence[Observer], call: Call) -> Callable[[str], None]:
    reports = [observer(call.entry, call.caller) for observer in observers]
    begun = _clock()

    def report(outcome: str) -> None:
        seconds = _clock() - begun
        for one in reports:
            one(outcome, seconds)

    return report


def once(report: Callable[[str], None]) -> Callable[[str], None]:
    pending = [report]

    def first(outcome: str) -> None:
        if pending:
            pending.pop()(outcome)

    return first


def check_grant(entry: ToolEntry, arguments: Any, caller: Caller) -> None:
    grant = caller.grant
    if grant.dialects and entry.dialect.name not in grant.dialects:
        raise Forbidden(entry.tool.name, None)
    if grant.permission < entry.required.most:
        check_permission(entry.tool.name, entry.required, entry.decode, arguments, grant.permission)


def handler_work(entry: ToolEntry, request: Any, interaction: Interaction | None) -> Callable[[Tx], Answer]:
    handler, tool, reply = entry.tool.handler, entry.tool, entry.dialect.reply
    if tool.interactive:

        def interact(tx: Tx) -> Answer:
            result = handler(tx, request, interaction)
            return result if isinstance(result, InputRequired) else tx.context.call_limits.fit(reply(tool, result))

        return interact
    if tool.long and interaction is not None:
        handler = with_progress(progress_of(interaction), handler)
    return lambda tx: tx.context.call_limits.fit(reply(tool, handler(tx, request)))


def after_read_writes(tool: Tool, request: Any) -> list[Callable[[Tx, Any], None]]:
    """The writes a read leaves behind, each `(tx, result)`."""
    later: list[Callable[[Tx, Any], None]] = [lambda tx, _result: audit.record(tx)] if tool.audited else []
    if (after_read := tool.hooks.after_read) is not None:
        later.append(lambda tx, result: after_read(tx, request, result))
    return later


def with_result(write: Callable[[Tx, Any], None], result: Any, tx: Tx) -> None:
    write(tx, result)


def progress_of(interaction: Interaction) -> Progress:
    return Progress(lambda done, total: interaction.progress(done, total, None))


def with_call_id(id_: str, work: Work) -> Work:
    """The same work, on any thread; an unexpected error in it is logged under the id of the call."""

    def named(tx: Tx) -> Any:
        calling.set(id_)
        try:
            answer = work(tx)
        except Fault:
            calling.set("")
            raise
        calling.set("")
        return answer

    return named

"""The newest calls in memory, and how often which client called which tool, for the live page of the console."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from contextvars import ContextVar

from msgspec import Struct

from kernel.calls.dispatch import Answer, Call, OnOutcome
from kernel.calls.tools import Reply
from kernel.core.config import KeptCalls
from kernel.core.ids import now_ns, shared_call_id, utc_now
from kernel.core.limits import Header

_MOST_CALLS = 1000  # of a tenant
_MOST_OF_ALL = 4000  # of all tenants; those with the most calls give way
_MOST_COUNTS = 1000  # of a tenant: clients choose their names; calls of further clients count as of `others`
_MOST_CHARS = 4000  # of the arguments and of the answer of a call
_AGENT_CHARS = 160
_HOUR_MINUTES = 60
_agent: ContextVar[str] = ContextVar("user_agent", default="")


class Count(Struct):
    dialect: str
    tool: str
    client: str
    calls: int
    failed: int
    milliseconds: float
    last: str


class Hour(Struct):
    reads: int = 0
    writes: int = 0


class SeenCall(Struct):
    """One call; its texts are None unless they are kept, and a denied or cancelled call has no answer."""

    number: int
    id: str
    at: str
    tenant: str
    dialect: str
    tool: str
    client: str
    agent: str
    key: str
    outcome: str
    milliseconds: float
    bytes_in: int
    bytes_out: int
    arguments: str | None = None
    answer: str | None = None


class CallLog:
    """An observer of calls; all of it belongs to the event loop."""

    def __init__(self, keeps: KeptCalls) -> None:
        self.keeps: KeptCalls = keeps
        self.since = utc_now()
        self._calls: defaultdict[str, deque[SeenCall]] = defaultdict(lambda: deque(maxlen=_MOST_CALLS))
        self._counts: defaultdict[str, dict[tuple[str, str], Count]] = defaultdict(dict)
        self._number = 0
        self._minutes: dict[tuple[str, str, int], Hour] = {}  # of the last hour, by tenant and dialect
        self._used: dict[str, str] = {}  # when, by the id of a key; there are as many as keys
        self._waiting: set[asyncio.Future[None]] = set()

    def observe(self, call: Call) -> OnOutcome:
        """Return an observer that keeps as much of a call as `keeps` says."""
        agent, id_ = _agent.get(), shared_call_id()
        arguments = bytes(call.arguments) if self.keeps == "texts" else b""
        bytes_in = len(call.arguments)

        def on_outcome(outcome: str, seconds: float, answer: Answer | None) -> None:
            milliseconds = round(seconds * 1000, 3)
            self._number += 1
            self._count(call, outcome, milliseconds)
            if self.keeps != "counts":
                body = answer.body if isinstance(answer, Reply) else b""
                entry, caller = call.entry, call.caller
                names = (entry.dialect.name, entry.tool.name, caller.actor, agent, caller.key, outcome)
                sizes = (milliseconds, bytes_in, len(body))
                seen_call = SeenCall(self._number, id_, utc_now(), caller.tenant, *names, *sizes)
                if self.keeps == "texts":
                    seen_call.arguments = _text(arguments)
                    seen_call.answer = _text(body) if answer is not None else None
                self._keep(seen_call)
            self._tell()

        return on_outcome

    def note_agent(self, headers: Iterable[Header]) -> None:
        """Remember the User-Agent of the request under way: older clients are named nowhere else."""
        agent = next((value for name, value in headers if name == b"user-agent"), b"")
        _agent.set(agent[:_AGENT_CHARS].decode("latin-1"))

    def newest(self, tenant: str, dialects: Sequence[str] | None) -> list[SeenCall]:
        """Return the kept calls of a tenant to some dialects, the newest first; None for all dialects."""
        return [call for call in reversed(self._calls.get(tenant, ())) if dialects is None or call.dialect in dialects]

    def counts(self, tenant: str, dialects: Sequence[str] | None) -> list[Count]:
        counts_ = [
            count for count in self._counts.get(tenant, {}).values() if dialects is None or count.dialect in dialects
        ]
        return sorted(counts_, key=lambda count: count.last, reverse=True)

    def last_used(self, key: str) -> str:
        """Return when a key was last used for a call since calls are observed; empty for never."""
        return self._used.get(key, "")

    def last_hour(self, tenant: str, dialects: Sequence[str] | None) -> Hour:
        """Return how many calls of a tenant to some dialects read, and how many wrote; None for all dialects."""
        since = _minute() - _HOUR_MINUTES
        hours = [
            hour
            for (owner, dialect, minute), hour in self._minutes.items()
            if owner == tenant and minute > since and (dialects is None or dialect in dialects)
        ]
        return Hour(sum(hour.reads for hour in hours), sum(hour.writes for hour in hours))

    @property
    def number(self) -> int:
        return self._number

    async def changed(self, since: int, seconds: float) -> bool:
        """Waits until there are more calls than `since`; False if none came in time."""
        if self._number == since:
            next_call: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(next_call)
            try:
                await asyncio.wait([next_call], timeout=seconds)
            finally:
                self._waiting.discard(next_call)
        return self._number != since

    def _tell(self) -> None:
        for next_call in self._waiting:
            if not next_call.done():
                next_call.set_result(None)

    def _keep(self, call: SeenCall) -> None:
        self._calls[call.tenant].append(call)
        if sum(map(len, self._calls.values())) > _MOST_OF_ALL:
            max(self._calls.values(), key=len).popleft()

    def _count(self, call: Call, outcome: str, milliseconds: float) -> None:
        tool, caller = call.entry.tool.name, call.caller
        counts, key = self._counts[caller.tenant], (tool, caller.actor)
        if key not in counts and len(counts) >= _MOST_COUNTS:
            key = (tool, "others")
        count = counts.get(key)
        if count is None:
            count = counts[key] = Count(call.entry.dialect.name, *key, 0, 0, 0.0, "")
        count.calls += 1
        count.failed += outcome not in ("ok", "asked")
        count.milliseconds = round(count.milliseconds + milliseconds, 3)
        count.last = utc_now()
        self._count_minute(call)
        if caller.key:
            self._used[caller.key] = count.last

    def _count_minute(self, call: Call) -> None:
        key = (call.caller.tenant, call.entry.dialect.name, _minute())
        if key not in self._minutes:
            for old in [minute_key for minute_key in self._minutes if minute_key[2] <= key[2] - _HOUR_MINUTES]:
                del self._minutes[old]
            self._minutes[key] = Hour()
        if call.entry.tool.mode == "read":
            self._minutes[key].reads += 1
        else:
            self._minutes[key].writes += 1


def _minute() -> int:
    return now_ns() // 60_000_000_000


def _text(body: bytes) -> str:
    text = body[: 4 * _MOST_CHARS].decode("utf-8", "replace")
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"

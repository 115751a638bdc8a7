"""Tells those who run the server of each call once it is answered: for counting, for the log, for traces."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernel.dispatch import Bound, Dispatch
from kernel.errors import Fault
from kernel.ids import calling
from kernel.security.permissions import Caller, Denied
from kernel.store.context import Origin
from kernel.store.queue import Job, Work
from kernel.store.sqlite.connection import Tx
from kernel.store.store import Store
from kernel.tools import Ask, Dialect, Reply, Turn

# What a watch gives for a call that begins; it is told how the call came out, `ok` or a word for why not, and the
# seconds it took.
Told = Callable[[str, float], None]
Watch = Callable[[Bound, Caller], Told]
_clock = time.perf_counter


class Watched(Dispatch):
    """A Dispatch that tells `watch` of its calls; the plain one knows nothing of this, and so pays nothing for it.

    A call that is cancelled in a queue is not told of: it never ran.
    """

    def __init__(self, store: Store, dialects: Sequence[Dialect], rights: Mapping[str, Any], watch: Watch) -> None:
        super().__init__(store, dialects, rights)
        self._watch = watch

    def now(self, bound: Bound, arguments: Any, caller: Caller, turn: Turn | None = None) -> Reply | Ask:
        """Runs a short tool, and tells."""
        told = self._watch(bound, caller)
        begun = _clock()
        try:
            reply = Dispatch.now(self, bound, arguments, caller, turn)
        except Denied:
            told("denied", _clock() - begun)
            raise
        told("asked" if isinstance(reply, Ask) else reply.fault or "ok", _clock() - begun)
        return reply

    def start(
        self, bound: Bound, arguments: Any, caller: Caller, done: Callable[[Any], None], turn: Turn | None = None
    ) -> Reply | Ask | Job:
        """Starts, and tells when it is done."""
        if bound.short:
            return self.now(bound, arguments, caller, turn)
        told = self._watch(bound, caller)
        begun = _clock()

        def heard(reply: Reply | Ask) -> None:
            told(_outcome(reply), _clock() - begun)
            done(reply)

        try:
            started = Dispatch.start(self, bound, arguments, caller, heard, turn)
        except Denied:
            told("denied", _clock() - begun)
            raise
        if not isinstance(started, Job):
            told(_outcome(started), _clock() - begun)
        return started

    async def _stepwise(self, bound: Bound, arguments: Any, caller: Caller, turn: Turn | None) -> Reply | Ask:
        told = self._watch(bound, caller)
        begun = _clock()
        try:
            reply = await super()._stepwise(bound, arguments, caller, turn)
        except (Denied, asyncio.CancelledError) as error:
            told("denied" if isinstance(error, Denied) else "cancelled", _clock() - begun)
            raise
        told(_outcome(reply), _clock() - begun)
        return reply


class Logged(Watched):
    """A Watched whose calls have ids: what fails unexpectedly in one, on whatever thread, is logged under its own."""

    def start(
        self, bound: Bound, arguments: Any, caller: Caller, done: Callable[[Any], None], turn: Turn | None = None
    ) -> Reply | Ask | Job:
        """Starts; the id is the job's from here on."""
        try:
            return super().start(bound, arguments, caller, done, turn)
        finally:
            calling.set("")

    def _work(self, bound: Bound, request: Any, who: Origin, turn: Turn | None) -> Work:
        work = super()._work(bound, request, who, turn)
        call = calling.get()
        return _named(call, work) if call else work


def together(watches: Sequence[Watch]) -> Watch:
    """One watch that tells several."""
    if len(watches) == 1:
        return watches[0]

    def watch(bound: Bound, caller: Caller) -> Told:
        all_told = [one(bound, caller) for one in watches]

        def told(outcome: str, seconds: float) -> None:
            for one in all_told:
                one(outcome, seconds)

        return told

    return watch


def _outcome(reply: Reply | Ask) -> str:
    return "asked" if isinstance(reply, Ask) else reply.fault or "ok"


def _named(call: str, work: Work) -> Work:
    """The same work, on whatever thread, such that what fails in it unexpectedly is logged under the call's own id."""

    def named(tx: Tx) -> Any:
        calling.set(call)
        try:
            answer = work(tx)
        except Fault:
            calling.set("")
            raise
        calling.set("")
        return answer

    return named

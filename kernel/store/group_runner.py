"""Runs a group of writes in one transaction: embeddings before the lock, merged calls, the audit and undo data."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from kernel.core.errors import CatchFaults, Fault
from kernel.core.times import later
from kernel.embed.model import Embedding
from kernel.store import audit
from kernel.store.context import StoreContext
from kernel.store.engine import WriteConnection
from kernel.store.long_work import MORE
from kernel.store.queue import Job, Work, end_stage, merge_runs
from kernel.store.transaction import Tx

_EXCLUSIVE_BUDGET = 60  # times the usual cost limit, for a call with a transaction of its own
_UNDO_BYTES = 64 << 20  # a call of which one statement changed more cannot be undone


class GroupRunner:
    """Runs groups on the connection of the writer; with `undo_hours` the changes of undoable calls are kept."""

    def __init__(self, context: StoreContext, catch_faults: CatchFaults, undo_hours: int) -> None:
        self._context = context
        self._catch_faults = catch_faults
        self._undo_hours = undo_hours

    def run(self, db: WriteConnection, group: Sequence[Job]) -> Sequence[Work]:
        """Runs a group and commits it; returns the work that follows the commit."""
        vectors = self._embed_group(group)
        if vectors:
            end_stage(group, "embed")
        tx = db.begin(group[0].context, large=group[0].exclusive)
        tx.preload(vectors)
        for run in (group,) if len(group) == 1 else merge_runs(group):
            if len(run) == 1 or not self._run_batch(db, tx, run):
                for job in run:
                    job.answer = self.run_audited(db, tx, job) if job.audited else self._call(db, tx, job)
            end_stage(run, "work")
        db.commit(tx)
        end_stage(group, "commit")
        return tx.work_after_commit

    def _call(self, db: WriteConnection, tx: Tx, job: Job) -> Any:
        return db.call(tx, job.context, self._catch_faults, job.work, _EXCLUSIVE_BUDGET if job.exclusive else 1)

    def run_audited(self, db: WriteConnection, tx: Tx, job: Job) -> Any:
        """Runs one call and records it in the audit if it changed anything."""
        undoable, undo = job.undoable and self._undo_hours > 0, None
        if undoable:
            audit.expire_undo(tx, later(tx.now, -timedelta(hours=self._undo_hours)))
        before = db.total_changes()
        if undoable:
            answer, undo = self._undoable_call(db, tx, job)
        else:
            answer = self._call(db, tx, job)
        if isinstance(answer, Fault):
            return answer
        has_changes = db.total_changes() > before or tx.has_deferred
        if answer is MORE or job.earlier is not None:
            job.earlier = job.earlier or audit.EarlierSlices()
            job.earlier.record(tx, undo, changed=has_changes, more=answer is MORE)
        elif has_changes:
            audit.record(tx, call=undo.call if undo else "")
        return answer

    def _undoable_call(self, db: WriteConnection, tx: Tx, job: Job) -> tuple[Any, audit.UndoRecorder]:
        changes = db.record_changes(_UNDO_BYTES)
        try:
            recorder = audit.UndoRecorder(tx, changes, job.earlier)
            answer = self._call(db, tx, job)
            recorder.finish(keep=not isinstance(answer, Fault))
            return answer, recorder
        finally:
            tx.after_slice = None
            changes.close()

    def _embed_group(self, group: Sequence[Job]) -> dict[str, Embedding]:
        """Return the embeddings the group needs, computed before the lock is taken.

        A model that cannot be read is left to the calls: each of them fails, or does without.
        """
        texts = [text for job in group for text in self._texts(job)]
        embedder = self._context.embedder
        if embedder is not None and texts:
            with suppress(OSError, ValueError):
                return dict(zip(texts, embedder.embed(texts), strict=True))
        return {}

    def _texts(self, job: Job) -> Sequence[str]:
        """Return the texts that a call will embed; finding them takes time that the event loop must not spend."""
        texts = self._catch_faults(job.texts) if callable(job.texts) else job.texts
        if not isinstance(texts, Fault):
            return texts
        job.work, job.merge = partial(_refuse, texts), None
        return ()

    def _run_batch(self, db: WriteConnection, tx: Tx, run: Sequence[Job]) -> bool:
        """Runs merged calls as one; False, with nothing changed, if each of them must run by itself."""
        requests = [job.merge.request for job in run if job.merge]
        batch = run[0].merge and run[0].merge.batch
        answers = db.call(tx, run[0].context, self._catch_faults, lambda tx: batch(tx, requests) if batch else [])
        if isinstance(answers, Fault):
            return False
        for job, answer in zip(run, answers, strict=True):
            job.answer = answer
        if run[0].audited:
            audit.record(tx)
        return True


def _refuse(fault: Fault, _tx: Tx) -> None:
    raise fault

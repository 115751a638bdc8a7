"""What is done to the whole store of `sessions`, and what it says of itself (seed 002)."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from handlers.sessions import entity_extraction, graph, memories
from handlers.sessions.requests import Diagnostics, Health, Maintenance
from handlers.sessions.results import (
    Defaults,
    DiagnosticsReport,
    Flags,
    HealthReport,
    MaintenanceResult,
    RowCounts,
    SummaryState,
)
from handlers.sessions.settings import option
from handlers.sessions.summary import has_library
from kernel.errors import Fault
from kernel.search import index
from kernel.store import history, introspection
from kernel.store.transaction import Tx

_NOT_CONFIRMED = "confirm=true required for destructive actions"
_INCOMPLETE = "invalid action or missing parameter"
_SECONDS_PER_DAY = 86_400


class _DeletedMemory(NamedTuple):
    id: int
    content: str


def maintenance(tx: Tx, request: Maintenance) -> MaintenanceResult:
    """Give free space back, or delete memories with all that rests on them; deleting needs confirm=true."""
    if request.action == "vacuum":
        introspection.vacuum_after_commit(tx)
        return MaintenanceResult("ok", "vacuum")
    if request.confirm is not True:
        raise Fault("invalid", _NOT_CONFIRMED)
    gone = _delete(tx, request)
    for memory in gone:
        index.drop(tx, memories.SPACE, str(memory.id))
        history.append(tx, memories.SPACE, str(memory.id), request.action, before=memory.content)
    numbers = [memory.id for memory in gone]
    tx.run("sessions.admin.forget_mentions", memories=numbers)
    if request.action == "purge_all":
        graph.clear(tx)
    else:
        graph.delete_of_memories(tx, numbers)
    return MaintenanceResult("ok", deleted=len(gone))


def diagnostics(tx: Tx, request: Diagnostics) -> DiagnosticsReport:
    """Report where the store lies, what is switched on, what a search assumes, its tables and how much it holds."""
    counts = tx.one("sessions.admin.counts", RowCounts) or RowCounts(0, 0, 0, 0, 0)
    known = tx.embedding_model
    return DiagnosticsReport(
        str(Path.cwd()),
        introspection.file(tx),
        known[0] if known else None,
        introspection.model_folder(tx),
        _flags(tx),
        _defaults(tx),
        _summary(tx),
        introspection.tables(tx),
        counts,
    )


def health(tx: Tx, request: Health) -> HealthReport:
    """Say whether all is well, with the settings in force."""
    known, found = tx.embedding_model, _defaults(tx)
    return HealthReport(
        "ok",
        introspection.file(tx),
        known[1] if known else None,
        known[0] if known else None,
        introspection.model_folder(tx),
        entity_extraction.has_grammars(),
        found.top_k,
        found.top_p,
        found.recency_weight,
        found.priority_weight,
        found.fts_bonus,
        found.oversample_k,
        _flags(tx),
        _summary(tx),
        "INFO",
        None,
        option(tx, "WORKSPACE") or str(Path.cwd()),
    )


def _delete(tx: Tx, request: Maintenance) -> list[_DeletedMemory]:
    if request.action == "purge_all":
        return tx.all("sessions.admin.purge_all", _DeletedMemory)
    if request.action == "purge_session":
        session = (request.session_id or "").strip()
        if not session:
            raise Fault("invalid", f"{_INCOMPLETE}: purge_session needs session_id")
        return tx.all("sessions.admin.purge_session", _DeletedMemory, session_id=session)
    if request.older_than_days is None:
        raise Fault("invalid", f"{_INCOMPLETE}: prune_older_than needs older_than_days")
    return tx.all("sessions.admin.prune", _DeletedMemory, before=_days_before(tx.now, request.older_than_days))


def _days_before(now: str, days: int) -> str:
    """The moment so many days ago; the beginning of time where there were not that many."""
    moment = datetime.fromisoformat(now)
    first = datetime.fromisoformat("0001-01-01T00:00:00+00:00")
    return memories.time_before(now, days * _SECONDS_PER_DAY) if moment - first > timedelta(days=days) else ""


def _flags(tx: Tx) -> Flags:
    return Flags(*(option(tx, f"ENABLE_{name}") for name in ("VEC", "FTS", "GRAPH", "SESSION_SCOPE")))


def _defaults(tx: Tx) -> Defaults:
    names = ("TOP_K", "TOP_P", "RECENCY_WEIGHT", "PRIORITY_WEIGHT", "FTS_BONUS", "OVERSAMPLE_K")
    return Defaults(*(option(tx, name) for name in names))


def _summary(tx: Tx) -> SummaryState:
    model: str = option(tx, "SUMMARY_MODEL")
    enabled = bool(model) and has_library() and Path(model).is_file()
    names = ("SUMMARY_CTX", "SUMMARY_THREADS", "SUMMARY_MAX_TOKENS", "SUMMARY_TEMPERATURE")
    return SummaryState(enabled, model or None, *(option(tx, name) for name in names), auto_install=False)

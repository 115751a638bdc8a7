"""The tools maintenance, diagnostics and health (seed 002), and their schemas."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from handlers.sessions import entity_extraction, graph, memories, removal
from handlers.sessions.settings import option
from handlers.sessions.summary import has_library
from kernel.calls.tools import Hints, InputRequired, Interaction, Tool, confirmation, exclusive, read
from kernel.core.errors import Fault
from kernel.store import introspection
from kernel.store.long_work import STEP_ROWS, Steps
from kernel.store.transaction import SLICE_BYTES, Tx

_NOT_CONFIRMED = "confirm=true required for destructive actions"
_INCOMPLETE = "invalid action or missing parameter"
_QUESTIONS = {
    "purge_all": "Delete every memory of every session, and the graph?",
    "purge_session": "Delete all memories of the session {0.session_id}?",
    "prune_older_than": "Delete all memories that are older than {0.older_than_days} days?",
}
_ARGUMENT_OF = {"session_id": "purge_session", "older_than_days": "prune_older_than"}
_SECONDS_PER_DAY = 86_400


class Maintenance(Struct, forbid_unknown_fields=True):
    action: Annotated[
        Literal["vacuum", "purge_all", "purge_session", "prune_older_than"],
        Meta(
            description="vacuum: give free space back. purge_all: delete every memory and the graph. purge_session: "
            "delete the memories of session_id. prune_older_than: delete memories older than older_than_days"
        ),
    ]
    confirm: Annotated[bool | None, Meta(description="Must be true for everything but vacuum")] = None
    session_id: Annotated[Annotated[str, Meta(max_length=256)] | None, Meta(description="For purge_session")] = None
    older_than_days: Annotated[
        Annotated[int, Meta(ge=0, le=100_000)] | None, Meta(description="For prune_older_than; 0 is everything")
    ] = None


class Diagnostics(Struct, forbid_unknown_fields=True):
    """A request without arguments."""


class Health(Struct, forbid_unknown_fields=True):
    """A request without arguments."""


class MaintenanceResult(Struct, omit_defaults=True):
    """Result of maintenance; `deleted` counts memories."""

    status: Literal["ok"]
    action: Literal["vacuum"] | UnsetType = UNSET
    deleted: int | UnsetType = UNSET


class Flags(Struct):
    vec: bool
    fts: bool
    graph: bool
    session_scope: bool


class Defaults(Struct):
    top_k: int
    top_p: float
    recency_weight: float
    priority_weight: float
    fts_bonus: float
    oversample_k: int


class SummaryState(Struct):
    """The configuration of summaries; `model` is null without a GGUF model."""

    enabled: bool
    model: str | None
    ctx: int
    threads: int
    max_tokens: int
    temperature: float
    auto_install: bool


class RowCounts(Struct):
    memories: int
    entities: int
    graph_entities: int
    graph_observations: int
    graph_relations: int


class DiagnosticsReport(Struct):
    cwd: str
    db_path: str
    model: str | None
    model_cache_dir: str
    flags: Flags
    defaults: Defaults
    summary: SummaryState
    tables: list[str]
    counts: RowCounts


class HealthReport(Struct):
    status: Literal["ok"]
    db_path: str
    embedding_dim: int | None
    model: str | None
    model_cache_dir: str
    tree_sitter: bool
    default_top_k: int
    default_top_p: float
    recency_weight: float
    priority_weight: float
    fts_bonus: float
    oversample_k: int
    flags: Flags
    summary: SummaryState
    log_level: str
    log_file: str | None
    workspace: str


def maintenance(
    tx: Tx, request: Maintenance, interaction: Interaction | None
) -> MaintenanceResult | InputRequired | Steps[MaintenanceResult]:
    """Give free space back, or delete memories with all that rests on them; deleting needs confirm=true."""
    _check_arguments(request)
    if request.action == "vacuum":
        introspection.vacuum_after_commit(tx)
        return MaintenanceResult("ok", "vacuum")
    if request.confirm is not True:
        raise Fault("invalid", _NOT_CONFIRMED)
    question = confirmation(interaction, _QUESTIONS[request.action].format(request))
    if question is not None:
        return question
    return _deletion(request, _selection(tx, request))


def _deletion(request: Maintenance, selection: Mapping[str, str | None]) -> Steps[MaintenanceResult]:
    tx = yield
    whole = request.action == "purge_all"
    # Only those that were there when the call began: it ends although others add memories meanwhile.
    newest, newest_entity = tx.one("sessions.admin.newest", int) or 0, graph.newest(tx)
    count = last = 0
    page = {"upto": newest, "limit": STEP_ROWS, "bytes": SLICE_BYTES, **selection}
    while deletions := tx.all("sessions.admin.delete_slice", memories.Deleted, after=last, **page):
        last = max(memory.id for memory in deletions)
        numbers = removal.record_deleted(tx, deletions, request.action)
        graph.delete_of_memories(tx, numbers, request.action if whole else None)
        count += len(deletions)
        tx = yield
    if whole:
        yield from graph.clear_steps(tx, request.action, newest_entity)
    return MaintenanceResult("ok", deleted=count)


def diagnostics(tx: Tx, request: Diagnostics) -> DiagnosticsReport:
    """Report where the store lies, what is switched on, what a search assumes, its tables and how much it holds."""
    counts = tx.one("sessions.admin.counts", RowCounts) or RowCounts(0, 0, 0, 0, 0)
    model = tx.embedding_model
    return DiagnosticsReport(
        str(Path.cwd()),
        introspection.file(tx),
        model[0] if model else None,
        introspection.model_folder(tx),
        _flags(tx),
        _defaults(tx),
        _summary(tx),
        introspection.tables(tx),
        counts,
    )


def health(tx: Tx, request: Health) -> HealthReport:
    """Say whether all is well, with the settings in force."""
    model, defaults = tx.embedding_model, _defaults(tx)
    return HealthReport(
        "ok",
        introspection.file(tx),
        model[1] if model else None,
        model[0] if model else None,
        introspection.model_folder(tx),
        entity_extraction.has_grammars(),
        defaults.top_k,
        defaults.top_p,
        defaults.recency_weight,
        defaults.priority_weight,
        defaults.fts_bonus,
        defaults.oversample_k,
        _flags(tx),
        _summary(tx),
        "INFO",
        None,
        option(tx, "WORKSPACE") or str(Path.cwd()),
    )


def _check_arguments(request: Maintenance) -> None:
    """Raises a Fault naming an argument of another action: who gives it expects to delete less than this call would."""
    arguments = {"session_id": (request.session_id or "").strip(), "older_than_days": request.older_than_days}
    for name, value in arguments.items():
        action = _ARGUMENT_OF[name]
        if value not in ("", None) and action != request.action:
            raise Fault("invalid", f"{name} goes with {action} only, and {request.action} would ignore it")


def _selection(tx: Tx, request: Maintenance) -> dict[str, str | None]:
    """Return which memories to delete: those of a session, those before a time, or all."""
    session, before = None, None
    if request.action == "purge_session":
        session = (request.session_id or "").strip()
        if not session:
            raise Fault("invalid", f"{_INCOMPLETE}: purge_session needs session_id")
        session = memories.session_as_stored(tx, session)
    elif request.action == "prune_older_than":
        if request.older_than_days is None:
            raise Fault("invalid", f"{_INCOMPLETE}: prune_older_than needs older_than_days")
        before = _days_before(tx.now, request.older_than_days)
    return {"session_id": session, "before": before}


def _days_before(now: str, days: int) -> str:
    """Return the time `days` days ago; the empty string, which sorts before every time, before the year 1."""
    moment = datetime.fromisoformat(now)
    first = datetime.fromisoformat("0001-01-01T00:00:00+00:00")
    # datetime has no years before 1.
    return memories.time_before(now, days * _SECONDS_PER_DAY) if moment - first > timedelta(days=days) else ""


def _flags(tx: Tx) -> Flags:
    return Flags(*(option(tx, f"ENABLE_{name}") for name in ("VEC", "FTS", "GRAPH", "SESSION_SCOPE")))


def _defaults(tx: Tx) -> Defaults:
    names = ("TOP_K", "TOP_P", "RECENCY_WEIGHT", "PRIORITY_WEIGHT", "FTS_BONUS", "OVERSAMPLE_K")
    return Defaults(*(option(tx, name) for name in names))


def _summary(tx: Tx) -> SummaryState:
    model: str = option(tx, "SUMMARY_MODEL")
    usable = bool(model) and has_library() and Path(model).is_file()
    names = ("SUMMARY_CTX", "SUMMARY_THREADS", "SUMMARY_MAX_TOKENS", "SUMMARY_TEMPERATURE")
    return SummaryState(usable, model or None, *(option(tx, name) for name in names), auto_install=False)


TOOLS: tuple[Tool, ...] = (
    exclusive(
        maintenance,
        Hints("Maintenance", destructive=True),
        permission={"prune_older_than": "admin", "purge_all": "admin", "purge_session": "write", "vacuum": "admin"},
        interactive=True,
    ),
    read(diagnostics, Hints("Diagnostics"), permission="admin"),
    read(health, Hints("Health"), permission="admin"),
)

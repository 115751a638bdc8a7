"""The tool memory_session (seed 000): working sessions, the innermost scope."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from handlers.scopes import errors
from handlers.scopes.field_types import Id, Label, Limit, Object, Offset, Text, page_bounds, validate
from handlers.scopes.inheritance import check_scope
from handlers.scopes.results import Session, dumps, loads, row_factory
from handlers.scopes.totals import Count, count_rows
from kernel.calls.tools import Hints, Tool, write
from kernel.store.transaction import Tx

Status = Literal["completed", "discarded"]
ProjectId = Annotated[Id | None, Meta(description="Parent project ID")]
_session_row = row_factory(Session, "metadata", loads)


class StartSession(Struct, tag="start", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """A new working session, within a project or on its own."""

    project_id: ProjectId = None
    name: Annotated[Label | None, Meta(description="Session label")] = None
    purpose: Annotated[Text | None, Meta(description="What this session is for")] = None
    agent_id: Annotated[Label | None, Meta(description="Which agent/IDE created it")] = None
    metadata: Annotated[Object | None, Meta(description="Scratch notes, temp decisions")] = None


class EndSession(Struct, tag="end", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """The session to end."""

    id: Annotated[Id, Meta(description="Session ID")]
    status: Annotated[Status | None, Meta(description="end: final status, completed if left out; list: filter")] = None


class ListSessions(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """Sessions in the order of creation."""

    project_id: ProjectId = None
    status: Literal["active", "completed", "discarded"] | None = None
    limit: Limit = 20
    offset: Offset = 0


class SessionSaved(Struct):
    """Result of start and end."""

    success: bool
    session: Session


class SessionList(Struct):
    """Result of list."""

    sessions: list[Session]
    meta: Count


def memory_session(tx: Tx, request: StartSession | EndSession | ListSessions) -> SessionSaved | SessionList:
    """Manage working sessions within projects."""
    validate(request)
    if isinstance(request, StartSession):
        return SessionSaved(True, _start_session(tx, request))
    if isinstance(request, EndSession):
        ended = tx.one(
            "scopes.sessions.end",
            _session_row,
            id=request.id,
            status=request.status or "completed",
            now=tx.now,
        )
        if ended is None:
            raise errors.not_found("Session", request.id)
        tx.add_target(("scopes:sessions", request.id, "ended"))  # without one an undo compares the whole index
        return SessionSaved(True, ended)
    return _list_sessions(tx, request)


def _list_sessions(tx: Tx, request: ListSessions) -> SessionList:
    page, filters = page_bounds(request.limit, request.offset), {"status": request.status}
    if request.project_id is None:
        sessions = tx.all("scopes.sessions.list", _session_row, **filters, **page)
    else:
        check_scope(tx, "project", request.project_id, "projectId")
        sessions = tx.all("scopes.sessions.of_project", _session_row, project_id=request.project_id, **filters, **page)
    filters["project_id"] = request.project_id
    return SessionList(sessions, count_rows(tx, "scopes.sessions.count", len(sessions), page, **filters))


def _start_session(tx: Tx, request: StartSession) -> Session:
    if request.project_id is not None:
        check_scope(tx, "project", request.project_id, "projectId")
    session = Session(
        tx.new_id("sess"),
        request.project_id,
        request.name,
        request.purpose,
        request.agent_id,
        "active",
        tx.now,
        None,
        request.metadata,
    )
    tx.run(
        "scopes.sessions.add",
        id=session.id,
        project_id=session.project_id,
        name=session.name,
        purpose=session.purpose,
        agent_id=session.agent_id,
        now=tx.now,
        metadata=dumps(session.metadata),
    )
    return session


TOOLS: tuple[Tool, ...] = (
    write(
        memory_session,
        Hints("Sessions"),
        permission={"start": "write", "end": "write", "list": "read"},
        read_arms=(ListSessions,),
        kept_arms=(EndSession,),
    ),
)

"""The tools memory_org, memory_project and memory_session (seed 000): the scopes below global."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from handlers.scopes import errors, field_types, results
from handlers.scopes.field_types import Id, Label, Limit, Name, Object, Offset, Text, name_key, validate
from handlers.scopes.inheritance import check_scope, unknown_scope
from handlers.scopes.results import Answer, Page, Project, Session, dumps, project_row, session_row
from kernel.calls.tools import Hints, Tool, write
from kernel.core.errors import Fault
from kernel.store import history
from kernel.store.transaction import Tx

PROJECT_SPACE = "scopes:projects"
OrgId = Annotated[Id | None, Meta(description="Parent organization ID")]
ProjectId = Annotated[Id, Meta(description="Project ID; get takes name instead")]
Metadata = Annotated[Object | None, Meta(description="Additional metadata")]
Goals = Annotated[Object | None, Meta(description="Goals, constraints, state; replaced as a whole by an update")]
Status = Literal["completed", "discarded"]
ParentId = Annotated[Id | None, Meta(description="Parent project ID")]


class CreateOrg(Struct, tag="create", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    name: Annotated[Name, Meta(description="Organization name")]
    metadata: Metadata = None


class ListOrgs(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    limit: Limit = 50
    offset: Offset = 0


class CreateProject(Struct, tag="create", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    name: Annotated[Name, Meta(description="Project name, unique within its organization in any case")]
    org_id: OrgId = None
    description: Annotated[Text | None, Meta(description="Project description")] = None
    root_path: Annotated[Label | None, Meta(description="Filesystem path")] = None
    metadata: Goals = None


class ListProjects(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    org_id: OrgId = None
    limit: Limit = 20
    offset: Offset = 0


class GetProject(Struct, tag="get", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    needs: ClassVar[str] = "id or name"

    id: ProjectId | None = None
    name: Annotated[Name | None, Meta(description="Project name; get takes it instead of id")] = None
    org_id: OrgId = None


class UpdateProject(Struct, tag="update", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    id: ProjectId
    name: Name | None = None
    description: Text | None = None
    root_path: Label | None = None
    metadata: Goals = None


class StartSession(Struct, tag="start", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    project_id: ParentId = None
    name: Annotated[Label | None, Meta(description="Session label")] = None
    purpose: Annotated[Text | None, Meta(description="What this session is for")] = None
    agent_id: Annotated[Label | None, Meta(description="Which agent/IDE created it")] = None
    metadata: Annotated[Object | None, Meta(description="Scratch notes, temp decisions")] = None


class EndSession(Struct, tag="end", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    id: Annotated[Id, Meta(description="Session ID")]
    status: Annotated[Status | None, Meta(description="end: final status, completed if left out; list: filter")] = None


class ListSessions(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    project_id: ParentId = None
    status: Literal["active", "completed", "discarded"] | None = None
    limit: Limit = 20
    offset: Offset = 0


def memory_org(tx: Tx, request: CreateOrg | ListOrgs) -> Answer | Page:
    """Manage organizations (top-level grouping)."""
    validate(request)
    if isinstance(request, CreateOrg):
        org = results.Organization(tx.new_id("org"), field_types.normal_name(request.name), tx.now, request.metadata)
        tx.run("scopes.hierarchy.add_org", **asdict(org) | {"metadata": dumps(org.metadata)})
        return Answer(True, organization=org)
    rows, count = "scopes.hierarchy.orgs", "scopes.hierarchy.count_orgs"
    orgs, totals = results.read_page(tx, rows, count, results.org_row, request, 50)
    return Page(organizations=orgs, meta=totals)


def memory_project(tx: Tx, request: CreateProject | ListProjects | GetProject | UpdateProject) -> Answer | Page:
    """Manage projects within organizations."""
    validate(request)
    if isinstance(request, CreateProject):
        return Answer(True, project=_create_project(tx, request))
    if isinstance(request, UpdateProject):
        return Answer(True, project=_update_project(tx, request))
    if isinstance(request, GetProject):
        return Answer(project=_get_project(tx, request))
    _check_parent(tx, "org", request.org_id)
    rows = "scopes.hierarchy.projects" if request.org_id is None else "scopes.hierarchy.projects_of_org"
    count = "scopes.hierarchy.count_projects"
    projects, totals = results.read_page(tx, rows, count, project_row, request, org_id=request.org_id)
    return Page(projects=projects, meta=totals)


def _check_parent(tx: Tx, scope_type: str, scope_id: str | None) -> None:
    if scope_id is not None:
        check_scope(tx, scope_type, scope_id, f"{scope_type}Id")


def _create_project(tx: Tx, request: CreateProject) -> Project:
    _check_parent(tx, "org", request.org_id)
    row_columns = {"id": tx.new_id("proj"), "created_at": tx.now, "metadata": dumps(request.metadata)}
    columns = {**asdict(request), **name_key(request.name), **row_columns}
    project = tx.one("scopes.hierarchy.add_project", project_row, **columns)
    if project is None:
        raise _name_taken(tx, request.name, request.org_id)
    return project


def _update_project(tx: Tx, request: UpdateProject) -> Project:
    before = _project_by_id(tx, request.id)
    field_types.check_changes(request)
    name = name_key(request.name) if request.name else {"name": None, "fold": None}
    changes = {**asdict(request), **name, "metadata": dumps(request.metadata), "now": tx.now}
    after = tx.one("scopes.hierarchy.update_project", project_row, **changes)
    # UPDATE OR IGNORE returns no row if another project has the name.
    if after is None:
        raise _name_taken(tx, request.name or "", before.org_id)
    history.append(tx, PROJECT_SPACE, request.id, "updated", before=dumps(before), after=dumps(after))
    return after


def _get_project(tx: Tx, request: GetProject) -> Project:
    if request.id is not None:
        return _project_by_id(tx, request.id)
    _check_parent(tx, "org", request.org_id)
    if request.name is None:
        raise errors.invalid("id", "either id or name is required")
    projects = tx.all("scopes.hierarchy.projects_by_name", project_row, **name_key(request.name))
    matching = [project for project in projects if project.org_id == request.org_id]
    if not matching and request.org_id is None:
        if len(projects) > 1:
            raise errors.invalid("orgId", f"is needed: {len(projects)} organizations have a project {request.name}")
        matching = projects
    if not matching:
        raise errors.not_found("Project", request.name, "name")
    return matching[0]


def _project_by_id(tx: Tx, project_id: str) -> Project:
    project = tx.one("scopes.hierarchy.project", project_row, id=project_id)
    if project is None:
        raise unknown_scope(tx, "project", project_id, "id")
    return project


def _name_taken(tx: Tx, name: str, org_id: str | None) -> Fault:
    same_name = tx.all("scopes.hierarchy.projects_by_name", project_row, **name_key(name))
    holder = next((project.id for project in same_name if project.org_id == org_id), None)
    return errors.exists("Project", name, f"org:{org_id}" if org_id else "no organization", "name", holder)


def memory_session(tx: Tx, request: StartSession | EndSession | ListSessions) -> Answer | Page:
    """Manage working sessions within projects."""
    validate(request)
    if isinstance(request, EndSession):
        status = request.status or "completed"
        closed_session = tx.one("scopes.hierarchy.end_session", session_row, id=request.id, status=status, now=tx.now)
        if closed_session is None:
            raise _not_active(tx, request.id)
        tx.add_target(("scopes:sessions", request.id, "ended"))  # without a target an undo compares the whole index
        return Answer(True, session=closed_session)
    _check_parent(tx, "project", request.project_id)
    if isinstance(request, StartSession):
        columns: dict[str, Any] = {"id": tx.new_id("sess"), "status": "active", "started_at": tx.now, "ended_at": None}
        session = Session(**asdict(request), **columns)
        tx.run("scopes.hierarchy.add_session", **asdict(session) | {"metadata": dumps(session.metadata)})
        return Answer(True, session=session)
    rows = "scopes.hierarchy.sessions" if request.project_id is None else "scopes.hierarchy.sessions_of_project"
    count, filters = "scopes.hierarchy.count_sessions", {"status": request.status, "project_id": request.project_id}
    sessions, totals = results.read_page(tx, rows, count, session_row, request, **filters)
    return Page(sessions=sessions, meta=totals)


def _not_active(tx: Tx, session_id: str) -> Fault:
    session = tx.one("scopes.hierarchy.session", session_row, id=session_id)
    if session is None:
        return errors.not_found("Session", session_id)
    status, at = session.status, session.ended_at
    problem = f"Session {session_id} was ended before: {status} at {at}"
    return errors.conflict(problem, field="id", status=status, endedAt=at)


TOOLS: tuple[Tool, ...] = (
    write(memory_org, Hints("Organizations"), read_arms=(ListOrgs,)),
    write(memory_project, Hints("Projects"), read_arms=(ListProjects, GetProject), kept_arms=(UpdateProject,)),
    write(memory_session, Hints("Sessions"), read_arms=(ListSessions,), kept_arms=(EndSession,)),
)

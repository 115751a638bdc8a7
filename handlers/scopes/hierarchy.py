"""The tools memory_org, memory_project and memory_session (seed 000): the scopes that hold entries."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from handlers.scopes import errors
from handlers.scopes.field_types import Id, Label, Limit, Name, Object, Offset, Text, page_bounds, validate
from handlers.scopes.inheritance import check_scope
from handlers.scopes.results import Count, Organization, Project, Session, dumps, loads, row_factory
from kernel.errors import Fault
from kernel.store import history
from kernel.store.transaction import Tx

PROJECT_SPACE = "scopes:projects"
Status = Literal["completed", "discarded"]
OrgId = Annotated[Id | None, Meta(description="Parent organization ID")]
ProjectId = Annotated[Id | None, Meta(description="Parent project ID")]
Metadata = Annotated[Object | None, Meta(description="Additional metadata")]
Goals = Annotated[Object | None, Meta(description="Goals, constraints, state; replaced as a whole by an update")]
_org_row = row_factory(Organization, "metadata", loads)
_project_row = row_factory(Project, "metadata", loads)
_session_row = row_factory(Session, "metadata", loads)


class CreateOrg(Struct, tag="create", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """A new organization."""

    name: Annotated[Name, Meta(description="Organization name")]
    metadata: Metadata = None


class ListOrgs(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """Organizations in the order of creation."""

    limit: Limit = 50
    offset: Offset = 0


class CreateProject(Struct, tag="create", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """A new project, within an organization or on its own."""

    name: Annotated[Name, Meta(description="Project name, unique within its organization in any case")]
    org_id: OrgId = None
    description: Annotated[Text | None, Meta(description="Project description")] = None
    root_path: Annotated[Label | None, Meta(description="Filesystem path")] = None
    metadata: Goals = None


class ListProjects(Struct, tag="list", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """Projects in the order of creation."""

    org_id: OrgId = None
    limit: Limit = 20
    offset: Offset = 0


class GetProject(Struct, tag="get", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """One project by id, or by name in any case."""

    id: Id | None = None
    name: Name | None = None
    org_id: OrgId = None


class UpdateProject(Struct, tag="update", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """The changes to a project; fields left out keep their value."""

    id: Id
    name: Name | None = None
    description: Text | None = None
    root_path: Label | None = None
    metadata: Goals = None


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


class OrgCreated(Struct):
    """Result of create."""

    success: bool
    organization: Organization


class OrgList(Struct):
    """Result of list."""

    organizations: list[Organization]
    meta: Count


class ProjectSaved(Struct):
    """Result of create and update."""

    success: bool
    project: Project


class ProjectFound(Struct):
    """Result of get."""

    project: Project


class ProjectList(Struct):
    """Result of list."""

    projects: list[Project]
    meta: Count


class SessionSaved(Struct):
    """Result of start and end."""

    success: bool
    session: Session


class SessionList(Struct):
    """Result of list."""

    sessions: list[Session]
    meta: Count


ORG_READ_ARMS = (ListOrgs,)
PROJECT_READ_ARMS = (ListProjects, GetProject)
SESSION_READ_ARMS = (ListSessions,)


def memory_org(tx: Tx, request: CreateOrg | ListOrgs) -> OrgCreated | OrgList:
    """Manage organizations (top-level grouping)."""
    validate(request)
    if isinstance(request, CreateOrg):
        org = Organization(tx.new_id("org"), request.name, tx.now, request.metadata)
        tx.run("scopes.hierarchy.add_org", id=org.id, name=org.name, now=tx.now, metadata=dumps(org.metadata))
        return OrgCreated(True, org)
    orgs = tx.all("scopes.hierarchy.orgs", _org_row, **page_bounds(request.limit, request.offset, 50))
    return OrgList(orgs, Count(len(orgs)))


def memory_project(
    tx: Tx, request: CreateProject | ListProjects | GetProject | UpdateProject
) -> ProjectSaved | ProjectFound | ProjectList:
    """Manage projects within organizations."""
    validate(request)
    if isinstance(request, CreateProject):
        return ProjectSaved(True, _create_project(tx, request))
    if isinstance(request, UpdateProject):
        return ProjectSaved(True, _update_project(tx, request))
    if isinstance(request, GetProject):
        return ProjectFound(_get_project(tx, request))
    page = page_bounds(request.limit, request.offset)
    if request.org_id is None:
        projects = tx.all("scopes.hierarchy.projects", _project_row, **page)
    else:
        projects = tx.all("scopes.hierarchy.projects_of_org", _project_row, org_id=request.org_id, **page)
    return ProjectList(projects, Count(len(projects)))


def memory_session(tx: Tx, request: StartSession | EndSession | ListSessions) -> SessionSaved | SessionList:
    """Manage working sessions within projects."""
    validate(request)
    if isinstance(request, StartSession):
        return SessionSaved(True, _start_session(tx, request))
    if isinstance(request, EndSession):
        ended = tx.one(
            "scopes.hierarchy.end_session",
            _session_row,
            id=request.id,
            status=request.status or "completed",
            now=tx.now,
        )
        if ended is None:
            raise errors.not_found("Session", request.id)
        return SessionSaved(True, ended)
    filters: dict[str, Any] = {"status": request.status, **page_bounds(request.limit, request.offset)}
    if request.project_id is None:
        sessions = tx.all("scopes.hierarchy.sessions", _session_row, **filters)
    else:
        sessions = tx.all(
            "scopes.hierarchy.sessions_of_project", _session_row, project_id=request.project_id, **filters
        )
    return SessionList(sessions, Count(len(sessions)))


def _create_project(tx: Tx, request: CreateProject) -> Project:
    if request.org_id is not None:
        check_scope(tx, "org", request.org_id, "orgId")
    created = tx.one(
        "scopes.hierarchy.add_project",
        _project_row,
        id=tx.new_id("proj"),
        org_id=request.org_id,
        name=request.name,
        fold=request.name.casefold(),
        description=request.description,
        root_path=request.root_path,
        now=tx.now,
        metadata=dumps(request.metadata),
    )
    if created is None:
        raise _name_taken(tx, request.name, request.org_id)
    return created


def _update_project(tx: Tx, request: UpdateProject) -> Project:
    before = _project_by_id(tx, request.id)
    after = tx.one(
        "scopes.hierarchy.update_project",
        _project_row,
        id=request.id,
        name=request.name,
        fold=request.name and request.name.casefold(),
        description=request.description,
        root_path=request.root_path,
        now=tx.now,
        metadata=dumps(request.metadata),
    )
    # UPDATE OR IGNORE returns no row if another project has the name.
    if after is None:
        raise _name_taken(tx, request.name or "", before.org_id)
    old, new = (msgspec.json.encode(project).decode() for project in (before, after))
    history.append(tx, PROJECT_SPACE, request.id, "updated", before=old, after=new)
    return after


def _get_project(tx: Tx, request: GetProject) -> Project:
    if request.id is not None:
        return _project_by_id(tx, request.id)
    if request.name is None:
        raise errors.invalid("id", "either id or name is required")
    found = tx.all("scopes.hierarchy.projects_by_name", _project_row, fold=request.name.casefold())
    matching = [project for project in found if project.org_id == request.org_id]
    if not matching and request.org_id is None:
        if len(found) > 1:
            raise errors.invalid("orgId", f"is needed: {len(found)} organizations have a project {request.name}")
        matching = found
    if not matching:
        raise errors.not_found("Project", request.name, "name")
    return matching[0]


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
        "scopes.hierarchy.add_session",
        id=session.id,
        project_id=session.project_id,
        name=session.name,
        purpose=session.purpose,
        agent_id=session.agent_id,
        now=tx.now,
        metadata=dumps(session.metadata),
    )
    return session


def _project_by_id(tx: Tx, project_id: str) -> Project:
    found = tx.one("scopes.hierarchy.project", _project_row, id=project_id)
    if found is None:
        raise errors.not_found("Project", project_id)
    return found


def _name_taken(tx: Tx, name: str, org_id: str | None) -> Fault:
    same_name = tx.all("scopes.hierarchy.projects_by_name", _project_row, fold=name.casefold())
    holder = next((project.id for project in same_name if project.org_id == org_id), None)
    return errors.exists("Project", name, f"org:{org_id}" if org_id else "no organization", "name", holder)

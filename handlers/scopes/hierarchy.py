"""The tools memory_org and memory_project (seed 000): the scopes that outlive a session."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from handlers.scopes import errors
from handlers.scopes.field_types import Id, Label, Limit, Name, Object, Offset, Text, normal_name, page_bounds, validate
from handlers.scopes.inheritance import check_scope
from handlers.scopes.results import Organization, Project, dumps, loads, row_factory
from handlers.scopes.totals import Count, count_rows
from kernel.calls.tools import Hints, Tool, write
from kernel.core.errors import Fault
from kernel.store import history
from kernel.store.transaction import Tx

PROJECT_SPACE = "scopes:projects"
OrgId = Annotated[Id | None, Meta(description="Parent organization ID")]
ProjectId = Annotated[Id, Meta(description="Project ID; get takes name instead")]
Metadata = Annotated[Object | None, Meta(description="Additional metadata")]
Goals = Annotated[Object | None, Meta(description="Goals, constraints, state; replaced as a whole by an update")]
_org_row = row_factory(Organization, "metadata", loads)
_project_row = row_factory(Project, "metadata", loads)


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

    needs: ClassVar[str] = "id or name"

    id: ProjectId | None = None
    name: Annotated[Name | None, Meta(description="Project name; get takes it instead of id")] = None
    org_id: OrgId = None


class UpdateProject(Struct, tag="update", tag_field="action", forbid_unknown_fields=True, rename="camel"):
    """The changes to a project; fields left out keep their value."""

    id: ProjectId
    name: Name | None = None
    description: Text | None = None
    root_path: Label | None = None
    metadata: Goals = None


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


def memory_org(tx: Tx, request: CreateOrg | ListOrgs) -> OrgCreated | OrgList:
    """Manage organizations (top-level grouping)."""
    validate(request)
    if isinstance(request, CreateOrg):
        org = Organization(tx.new_id("org"), normal_name(request.name), tx.now, request.metadata)
        tx.run("scopes.hierarchy.add_org", id=org.id, name=org.name, now=tx.now, metadata=dumps(org.metadata))
        return OrgCreated(True, org)
    page = page_bounds(request.limit, request.offset, 50)
    orgs = tx.all("scopes.hierarchy.orgs", _org_row, **page)
    return OrgList(orgs, count_rows(tx, "scopes.hierarchy.count_orgs", len(orgs), page))


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
    return _list_projects(tx, request)


def _list_projects(tx: Tx, request: ListProjects) -> ProjectList:
    page = page_bounds(request.limit, request.offset)
    if request.org_id is None:
        projects = tx.all("scopes.hierarchy.projects", _project_row, **page)
    else:
        check_scope(tx, "org", request.org_id, "orgId")
        projects = tx.all("scopes.hierarchy.projects_of_org", _project_row, org_id=request.org_id, **page)
    totals = count_rows(tx, "scopes.hierarchy.count_projects", len(projects), page, org_id=request.org_id)
    return ProjectList(projects, totals)


def _create_project(tx: Tx, request: CreateProject) -> Project:
    if request.org_id is not None:
        check_scope(tx, "org", request.org_id, "orgId")
    created = tx.one(
        "scopes.hierarchy.add_project",
        _project_row,
        id=tx.new_id("proj"),
        org_id=request.org_id,
        name=normal_name(request.name),
        fold=normal_name(request.name).casefold(),
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
        name=request.name and normal_name(request.name),
        fold=request.name and normal_name(request.name).casefold(),
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
    if request.org_id is not None:
        check_scope(tx, "org", request.org_id, "orgId")
    if request.name is None:
        raise errors.invalid("id", "either id or name is required")
    found = tx.all("scopes.hierarchy.projects_by_name", _project_row, fold=normal_name(request.name).casefold())
    matching = [project for project in found if project.org_id == request.org_id]
    if not matching and request.org_id is None:
        if len(found) > 1:
            raise errors.invalid("orgId", f"is needed: {len(found)} organizations have a project {request.name}")
        matching = found
    if not matching:
        raise errors.not_found("Project", request.name, "name")
    return matching[0]


def _project_by_id(tx: Tx, project_id: str) -> Project:
    found = tx.one("scopes.hierarchy.project", _project_row, id=project_id)
    if found is None:
        raise errors.not_found("Project", project_id)
    return found


def _name_taken(tx: Tx, name: str, org_id: str | None) -> Fault:
    same_name = tx.all("scopes.hierarchy.projects_by_name", _project_row, fold=normal_name(name).casefold())
    holder = next((project.id for project in same_name if project.org_id == org_id), None)
    return errors.exists("Project", name, f"org:{org_id}" if org_id else "no organization", "name", holder)


TOOLS: tuple[Tool, ...] = (
    write(
        memory_org,
        Hints("Organizations"),
        permission={"create": "write", "list": "read"},
        read_arms=(ListOrgs,),
    ),
    write(
        memory_project,
        Hints("Projects"),
        permission={"create": "write", "list": "read", "get": "read", "update": "write"},
        read_arms=(ListProjects, GetProject),
        kept_arms=(UpdateProject,),
    ),
)

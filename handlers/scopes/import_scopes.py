"""Creates the organizations, projects and sessions that the entries of an import belong to."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from handlers.scopes.field_types import normal_name
from handlers.scopes.import_document import OrgItem, ProjectItem, SessionItem, as_list, as_object, convert, timestamp
from handlers.scopes.results import dumps
from kernel.store.transaction import Tx

_ITEM_TYPES: Mapping[str, Any] = {"organizations": OrgItem, "projects": ProjectItem, "sessions": SessionItem}


class Problem(NamedTuple):
    """An item that was left out of an import, and the reason."""

    entry: str
    error: str


class DocumentScopes(NamedTuple):
    """The scopes of a document; `problems` are the invalid ones."""

    orgs: list[OrgItem]
    projects: list[ProjectItem]
    sessions: list[SessionItem]
    problems: list[Problem]


def parse_scopes(raw: Any) -> DocumentScopes:
    found = DocumentScopes([], [], [], [])
    for at, (many, shape) in enumerate(_ITEM_TYPES.items()):
        for number, item in enumerate(as_list(as_object(raw).get(many))):
            try:
                found[at].append(_as_stored(convert(item, shape)))
            except ValueError as error:
                found.problems.append(Problem(f"{many}[{number}]", str(error)))
    return found


def add_scopes(tx: Tx, scopes: DocumentScopes, wanted: set[str] | None) -> list[Problem]:
    """Creates the missing scopes: those in `wanted` (`project:ID`) with their parents, all for None.

    Existing scopes are not changed.
    """
    chosen = scopes if wanted is None else _with_parents(scopes, wanted)
    for org in chosen.orgs:
        tx.run(
            "scopes.import_scopes.add_org",
            id=org.id,
            name=org.name,
            now=org.created_at or tx.now,
            metadata=dumps(org.metadata),
        )
    problems = [*scopes.problems]
    known = [project.id for project in scopes.projects]
    problems += [problem for project in chosen.projects if (problem := _add_project(tx, project, known))]
    return problems + [problem for session in chosen.sessions if (problem := _add_session(tx, session))]


def _as_stored(item: Any) -> Any:
    if item.name is not None:
        item.name = normal_name(item.name)
    for field, wire in zip(item.__struct_fields__, item.__struct_encode_fields__, strict=True):
        if field.endswith("_at"):
            setattr(item, field, timestamp(wire, getattr(item, field)))
    return item


def _with_parents(scopes: DocumentScopes, wanted: set[str]) -> DocumentScopes:
    sessions = [one for one in scopes.sessions if f"session:{one.id}" in wanted]
    parents = {one.project_id for one in sessions}
    projects = [one for one in scopes.projects if f"project:{one.id}" in wanted or one.id in parents]
    owners = {one.org_id for one in projects}
    orgs = [one for one in scopes.orgs if f"org:{one.id}" in wanted or one.id in owners]
    return DocumentScopes(orgs, projects, sessions, [])


def _add_project(tx: Tx, project: ProjectItem, known: Sequence[str]) -> Problem | None:
    label = f"project {project.name}"
    if tx.one("scopes.inheritance.exists", int, type="project", id=project.id):
        return None
    if project.org_id is not None and not tx.one("scopes.inheritance.exists", int, type="org", id=project.org_id):
        return Problem(label, f"Organization not found: {project.org_id}")
    name_key = {"fold": project.name.casefold(), "org_id": project.org_id}
    others = [one for one in tx.all("scopes.import_scopes.projects_by_name", str, **name_key) if one not in known]
    # A project of the same name under another id: merging them by name would mix their entries.
    if others:
        hint = f'map "project:{project.id}" to project {others[0]} with scopeMapping'
        return Problem(label, f"Project already exists: {project.name}. Suggestion: {hint}")
    created = project.created_at or tx.now
    tx.run(
        "scopes.import_scopes.add_project",
        id=project.id,
        name=project.name,
        description=project.description,
        root_path=project.root_path,
        now=created,
        updated_at=project.updated_at or created,
        metadata=dumps(project.metadata),
        **name_key,
    )
    return None


def _add_session(tx: Tx, session: SessionItem) -> Problem | None:
    project = session.project_id
    if project is not None and not tx.one("scopes.inheritance.exists", int, type="project", id=project):
        return Problem(f"session {session.name or session.id}", f"Project not found: {project}")
    tx.run(
        "scopes.import_scopes.add_session",
        id=session.id,
        project_id=project,
        name=session.name,
        purpose=session.purpose,
        agent_id=session.agent_id,
        status=session.status,
        now=session.started_at or tx.now,
        ended_at=session.ended_at,
        metadata=dumps(session.metadata),
    )
    return None

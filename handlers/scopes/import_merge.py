"""Brings the entries of a document back, or into those that are here, as the strategy says."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from handlers.scopes.entry_kinds import GUIDELINE, KNOWLEDGE, TOOL
from handlers.scopes.import_document import Entry, entry, label
from handlers.scopes.import_entries import Known, State, Strategy, create, merge
from handlers.scopes.import_scopes import Problem, put_back
from handlers.scopes.import_scopes import read as scopes_of
from handlers.scopes.import_tags import Marked, mark
from handlers.scopes.inheritance import GLOBAL, LABELS, key
from kernel.store.progress import steps
from kernel.store.transaction import Tx

KINDS = (TOOL, GUIDELINE, KNOWLEDGE)
DONE = ("created", "updated", "skipped")
Where = tuple[str, str | None]


class How(NamedTuple):
    """How to import: `to` maps `type:id` of a scope in the document to its type and id here; `fresh` keeps no id."""

    strategy: Strategy
    importer: str | None
    fresh: bool
    to: Mapping[str, Where]


class Named(NamedTuple):
    """An entry of a document, and what to call it."""

    entry: Entry
    label: str


def restore(tx: Tx, document: Mapping[str, Any], how: How) -> State:
    """Writes a document; what came of it, with a problem for everything that was left out.

    Its scopes come back where they are not here; with a mapping only those that an entry still stands in.
    """
    found, problems = _read(document["entries"], how.to)
    scopes = scopes_of(document.get("scopes"))
    wanted = {key(one.entry.scope_type, one.entry.scope_id) for one in found} if how.to else None
    state = _begin(tx, found, how)
    here = {project.id for project in scopes.projects if _there(tx, project.id)}
    state.problems += [*problems, *put_back(tx, scopes, wanted)]
    for one in steps(tx, found):
        _bring(tx, state, one)
    for project in scopes.projects:
        chosen = wanted is None or key("project", project.id) in wanted
        stays = project.id in here and how.strategy in {"skip", "error"}
        if chosen and not stays and _there(tx, project.id):
            state.marked.append(
                Marked("project", project.id, f"project {project.name}", project.tags, project.relations, False)
            )
    state.problems += mark(tx, document.get("tags"), state.marked, state.ids)
    return state


def _there(tx: Tx, project_id: str) -> bool:
    return bool(tx.one("scopes.inheritance.exists", int, type="project", id=project_id))


def _read(raw: Mapping[str, Any], to: Mapping[str, Where]) -> tuple[list[Named], list[Problem]]:
    """The entries of a document in the scopes they are to stand in, and what is wrong with the others."""
    found: list[Named] = []
    problems: list[Problem] = []
    for kind in KINDS:
        for number, one in enumerate(raw.get(kind.many) or ()):
            name = label(kind, one, number)
            try:
                found.append(Named(entry(kind, one, to), name))
            except ValueError as error:
                problems.append(Problem(name, str(error)))
    return found, problems


def _begin(tx: Tx, found: Sequence[Named], how: How) -> State:
    said = {said.id for one in found for said in one.entry.versions if said.id is not None}
    own = set[str]() if how.fresh else {one.entry.item.id for one in found if one.entry.item.id is not None}
    known = {row.id: row for row in tx.all("scopes.import_merge.known", Known, ids=list(own))}
    taken = set(tx.all("scopes.import_merge.versions", str, ids=list(said)))
    counts: dict[str, dict[str, int]] = {kind.many: dict.fromkeys(DONE, 0) for kind in KINDS}
    return State(how.strategy, how.importer, how.fresh, own, known, taken, counts, [], [], set(), {}, [])


def _bring(tx: Tx, state: State, named: Named) -> None:
    """Writes one entry, or counts it where the strategy leaves what is here."""
    one, (kind, item) = named.entry, named.entry[:2]
    if problem := _ghost(tx, one):
        state.problems.append(Problem(named.label, problem))
        return
    there = _match(tx, state, one)
    number = create(tx, state, one) if there is None else there.id
    if item.id is not None:
        state.claimed.add(number)
        state.ids[kind.name, item.id] = number
    if there is not None and state.strategy == "error":
        where = key(one.scope_type, one.scope_id)
        state.existing.append(Problem(named.label, f"{kind.label} already exists: {one.name} in {where}"))
        return
    if there is not None and state.strategy == "skip":
        state.counts[kind.many]["skipped"] += 1
        return
    if there is not None:
        merge(tx, state, one, number)
    state.counts[kind.many]["created" if there is None else "updated"] += 1
    exact = there is not None and state.strategy == "replace"
    tags, relations = _given(item.tags), _given(item.relations)
    state.marked.append(Marked(kind.name, number, named.label, tags, relations, exact))


def _given(values: Any) -> Any:
    return None if values is UNSET else values or ()


def _ghost(tx: Tx, one: Entry) -> str | None:
    """What is wrong with the scope of an entry."""
    if one.scope_type == GLOBAL:
        return None
    if one.scope_type not in LABELS:
        return f"Validation error: scopeType - {one.scope_type} is not one of {', '.join([GLOBAL, *LABELS])}"
    if one.scope_id is None:
        return "scopeId is required for non-global scope"
    if tx.one("scopes.inheritance.exists", int, type=one.scope_type, id=one.scope_id):
        return None
    hint = f'create it, or map "{key(one.scope_type, one.scope_id)}" with scopeMapping'
    return f"{LABELS[one.scope_type]} not found: {one.scope_id}. Suggestion: {hint}"


def _match(tx: Tx, state: State, one: Entry) -> Known | None:
    """The entry that is meant: by id, or by name in the very scope; never one that stands for another of the document.

    An entry that is retired in the document is not the one in use here, unless their ids say so.
    """
    scope, retired = key(one.scope_type, one.scope_id), one.item.is_active is False
    same = state.known.get(one.item.id or "")
    if same is not None and (same.kind, same.scope, same.name) != (one.kind.name, scope, one.name):
        same = None
    if same is not None and (same.active or retired):
        return same
    for row in tx.all("scopes.import_merge.same_name", Known, kind=one.kind.name, name=one.name, scope=scope):
        alike = not row.active and row.created_at == one.created_at if retired else row.active
        taken = one.item.id is not None and (row.id in state.claimed or row.id in state.own)
        if alike and not taken:
            return row
    return same

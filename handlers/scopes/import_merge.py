"""Merges a document into the store: matches its entries with existing ones and applies the conflict strategy."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from handlers.scopes.entry_kinds import GUIDELINE, KNOWLEDGE, TOOL, Kind
from handlers.scopes.field_types import normal_name
from handlers.scopes.import_document import ParsedEntry, entry_label, parse_entry, plain
from handlers.scopes.import_entries import ExistingEntry, ImportState, Strategy, create_entry, merge_entry
from handlers.scopes.import_scopes import Problem, add_scopes
from handlers.scopes.import_scopes import parse_scopes as scopes_of
from handlers.scopes.import_tags import Tagging, attach_all
from handlers.scopes.inheritance import GLOBAL, LABELS, scope_key
from kernel.store.long_work import Steps
from kernel.store.progress import begin_steps, count_step
from kernel.store.transaction import Tx

KINDS = (TOOL, GUIDELINE, KNOWLEDGE)
OUTCOMES = ("created", "updated", "skipped")
ScopeRef = tuple[str, str | None]
Item = tuple[Kind, int, Any]  # an entry of a document: its kind, its place in the list of that kind, as JSON or data
_CHUNK = 50  # entries between two steps: some 20 ms


class ImportOptions(NamedTuple):
    """The options of an import; `scope_mapping` maps `type:id` of a scope in the document to its type and id here."""

    strategy: Strategy
    imported_by: str | None
    generate_ids: bool
    scope_mapping: Mapping[str, ScopeRef]


class LabelledEntry(NamedTuple):
    """An entry of a document, and its label in reports."""

    entry: ParsedEntry
    label: str


class _Outline(NamedTuple):
    """The facts about all entries that the first write needs: their ids, their scopes, and the problems."""

    ids: set[str]
    scopes: set[str]
    problems: list[Problem]


def is_small(document: Mapping[str, Any]) -> bool:
    """Return whether a document takes no longer than other calls may wait."""
    return sum(len(document["entries"].get(kind.plural) or ()) for kind in KINDS) <= _CHUNK


def merge_document(tx: Tx, document: Mapping[str, Any], options: ImportOptions) -> Steps[ImportState]:
    """Writes a document, a chunk a step. The counts, and a problem for every item that was left out.

    Missing scopes are created; with a mapping only those that an entry still belongs to. The entries are parsed twice,
    so that a large document is never in memory as a whole.
    """
    raw = document["entries"]
    items = [(kind, number, one) for kind in KINDS for number, one in enumerate(raw.get(kind.plural) or ())]
    outline = _Outline(set(), set(), [])
    for start in range(0, len(items), _CHUNK):
        for one in _chunk(items, start, options.scope_mapping):
            _add_to_outline(outline, one)
        tx = yield
    scopes = scopes_of(document.get("scopes"))
    wanted = outline.scopes if options.scope_mapping else None
    state = _new_state(set() if options.generate_ids else outline.ids, options)
    # Read before the scopes are created: under skip and error only new projects get tags and relations.
    known = [*(project.id for project in scopes.projects), *state.new_ids.values()]
    existing_projects = {number for number in known if _project_exists(tx, number)}
    state.problems += [*outline.problems, *add_scopes(tx, scopes, wanted)]
    yield from _import_entries(tx, state, items, options.scope_mapping)
    for project in scopes.projects:
        mapped = state.new_ids.get(("project", project.id))
        number = mapped or project.id
        chosen = wanted is None or mapped or scope_key("project", project.id) in wanted
        stays = number in existing_projects and options.strategy in {"skip", "error"}
        if chosen and not stays and _project_exists(tx, number):
            links = (project.tags, project.relations)
            state.taggings.append(Tagging("project", number, f"project {project.name}", *links, False))
    attached = yield from attach_all(tx, document.get("tags"), state.taggings, state.new_ids)
    state.problems += attached.problems
    # An entry that was the same already counts as updated only if it got a tag or a relation, or lost one.
    for plural, number in state.unchanged:
        state.counts[plural]["updated" if number in attached.changed_ids else "skipped"] += 1
    return state


def _import_entries(
    tx: Tx, state: ImportState, items: Sequence[Item], scope_mapping: Mapping[str, ScopeRef]
) -> Steps[None]:
    begin_steps(tx, len(items))
    for start in range(0, len(items), _CHUNK):
        chunk = [one for one in _chunk(items, start, scope_mapping) if isinstance(one, LabelledEntry)]
        _read_existing(tx, state, chunk)
        for one in chunk:
            _import_entry(tx, state, one)
            count_step(tx)
        tx = yield


def _project_exists(tx: Tx, project_id: str) -> bool:
    return bool(tx.one("scopes.inheritance.exists", int, type="project", id=project_id))


def _chunk(items: Sequence[Item], start: int, scope_mapping: Mapping[str, ScopeRef]) -> list[LabelledEntry | Problem]:
    """Return the next entries of a document in their target scopes; for an invalid one its problem."""
    return [_parsed(item, scope_mapping) for item in items[start : start + _CHUNK]]


def _parsed(item: Item, scope_mapping: Mapping[str, ScopeRef]) -> LabelledEntry | Problem:
    kind, number, raw = item
    label = entry_label(kind, None, number)
    try:
        data = plain(raw)
        label = entry_label(kind, data, number)
        return LabelledEntry(parse_entry(kind, data, scope_mapping), label)
    except (ValueError, msgspec.DecodeError) as error:
        return Problem(label, str(error))


def _add_to_outline(outline: _Outline, one: LabelledEntry | Problem) -> None:
    if isinstance(one, Problem):
        outline.problems.append(one)
        return
    outline.scopes.add(scope_key(one.entry.scope_type, one.entry.scope_id))
    if one.entry.item.id is not None:
        outline.ids.add(one.entry.item.id)


def _read_existing(tx: Tx, state: ImportState, chunk: Sequence[LabelledEntry]) -> None:
    """Read the stored entries of a chunk's ids; other calls may have written since the chunk before."""
    own = [one.entry.item.id for one in chunk if one.entry.item.id in state.kept_ids]
    state.existing_entries = {row.id: row for row in tx.all("scopes.import_merge.by_ids", ExistingEntry, ids=own)}
    version_ids = [version.id for one in chunk for version in one.entry.versions if version.id is not None]
    state.used_version_ids = set(tx.all("scopes.import_merge.used_version_ids", str, ids=version_ids))


def _new_state(kept_ids: set[str], options: ImportOptions) -> ImportState:
    counts: dict[str, dict[str, int]] = {kind.plural: dict.fromkeys(OUTCOMES, 0) for kind in KINDS}
    # Relations to a project that is mapped to another one go to that one.
    mapped = {
        ("project", source.removeprefix("project:")): target_id
        for source, (target_type, target_id) in options.scope_mapping.items()
        if source.startswith("project:") and target_type == "project" and target_id is not None
    }
    return ImportState(
        options.strategy,
        options.imported_by,
        options.generate_ids,
        kept_ids,
        existing_entries={},
        used_version_ids=set(),
        counts=counts,
        conflicts=[],
        problems=[],
        matched_ids=set(),
        new_ids=mapped,
        taggings=[],
        unchanged=[],
    )


def _import_entry(tx: Tx, state: ImportState, named: LabelledEntry) -> None:
    """Writes one entry, or only counts it if the strategy keeps the existing one."""
    one, (kind, item) = named.entry, named.entry[:2]
    if problem := _scope_problem(tx, one):
        state.problems.append(Problem(named.label, problem))
        return
    existing = _match(tx, state, one)
    number = create_entry(tx, state, one) if existing is None else existing.id
    if item.id is not None:
        state.matched_ids.add(number)
        state.new_ids[kind.name, item.id] = number
    if existing is not None and state.strategy == "error":
        where = scope_key(one.scope_type, one.scope_id)
        state.conflicts.append(Problem(named.label, f"{kind.label} already exists: {one.name} in {where}"))
        return
    if existing is not None and state.strategy == "skip":
        state.counts[kind.plural]["skipped"] += 1
        return
    if existing is None:
        state.counts[kind.plural]["created"] += 1
    elif merge_entry(tx, state, one, number):
        state.counts[kind.plural]["updated"] += 1
    else:
        state.unchanged.append((kind.plural, number))
    exact = existing is not None and state.strategy == "replace"
    tags, relations = _none_if_unset(item.tags), _none_if_unset(item.relations)
    state.taggings.append(Tagging(kind.name, number, named.label, tags, relations, exact))


def _none_if_unset(values: Any) -> Any:
    return None if values is UNSET else values or ()


def _scope_problem(tx: Tx, one: ParsedEntry) -> str | None:
    """Return the problem with the scope of an entry; None for a valid scope."""
    if one.scope_type == GLOBAL:
        return None
    if one.scope_type not in LABELS:
        return f"Validation error: scopeType - {one.scope_type} is not one of {', '.join([GLOBAL, *LABELS])}"
    if one.scope_id is None:
        return "scopeId is required for non-global scope"
    if tx.one("scopes.inheritance.exists", int, type=one.scope_type, id=one.scope_id):
        return None
    hint = f'create it, or map "{scope_key(one.scope_type, one.scope_id)}" with scopeMapping'
    return f"{LABELS[one.scope_type]} not found: {one.scope_id}. Suggestion: {hint}"


def _match(tx: Tx, state: ImportState, one: ParsedEntry) -> ExistingEntry | None:
    """Return the existing entry by id, or by name in the same scope, unless another entry of the document was matched
    with it.

    An entry that is inactive in the document matches an active one here by id only.
    """
    scope, retired = scope_key(one.scope_type, one.scope_id), one.item.is_active is False
    same = state.existing_entries.get(one.item.id or "")
    if same is not None and (same.kind, same.scope, normal_name(same.name)) != (one.kind.name, scope, one.name):
        same = None
    if same is not None and (same.active or retired):
        return same
    for row in tx.all("scopes.import_merge.same_name", ExistingEntry, kind=one.kind.name, name=one.name, scope=scope):
        alike = not row.active and row.created_at == one.created_at if retired else row.active
        taken = one.item.id is not None and (row.id in state.matched_ids or row.id in state.kept_ids)
        if alike and not taken:
            return row
    return same

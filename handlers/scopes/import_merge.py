"""Merges a document into the store: matches its entries with those of the store and applies the conflict strategy."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import asdict

from handlers.scopes import entries, import_document
from handlers.scopes.entry_kinds import DEFAULT_PRIORITY, GUIDELINE, JSON_COLUMNS, KINDS, Kind
from handlers.scopes.field_types import name_key, normal_name
from handlers.scopes.import_document import DocumentScopes, LeftOut, ParsedEntry, RelationItem, TagItem, VersionItem
from handlers.scopes.inheritance import GLOBAL, LABELS, scope_exists, scope_key
from handlers.scopes.relations import RELATION_SPACE, TARGET_LABELS, target_exists
from handlers.scopes.results import EntryTag, Relation, Tag, dumps, tag_row
from handlers.scopes.tags import id_by_name
from kernel.store import history
from kernel.store.long_work import Steps, begin_steps, count_step
from kernel.store.transaction import Tx

Strategy = Literal["skip", "update", "replace", "error"]
OUTCOMES = ("created", "updated", "skipped")
UPDATE_REASON = "Imported update"  # changeReason of the original
ScopeRef = tuple[str, str | None]
Item = tuple[Kind, int, Any]  # an entry of a document: its kind, its place in the list of that kind, as JSON or data
_CHUNK = 50  # entries between two steps: some 20 ms
_TAGGED_CHUNK = 100  # likewise of items with tags and relations


class ImportOptions(NamedTuple):
    """The options of an import; `scope_mapping` maps `type:id` of a scope in the document to its type and id here."""

    strategy: Strategy
    imported_by: str | None
    generate_ids: bool
    scope_mapping: Mapping[str, ScopeRef]


class ExistingEntry(NamedTuple):
    id: str
    kind: str
    scope: str
    name: str
    active: int
    created_at: str


class Tagging(NamedTuple):
    """An entry or a project, and its tags and relations in the document; None changes nothing.

    With `exact`, tags and relations that the document does not have are removed.
    """

    kind: str
    id: str
    label: str
    tags: Sequence[str] | None
    relations: Sequence[RelationItem] | None
    exact: bool


class ImportState(Struct):
    """The options of an import, and its progress.

    `kept_ids` are the entry ids of the document that are to be kept, `existing_entries` the entries that have them
    here, `matched_ids` the entries that an entry of the document was matched with, `new_ids` maps kind and id in the
    document to the id here, `used_version_ids` are the version ids that are taken, `unchanged` are plural and id of
    the entries that were the same already, and `owners` are, with a mapping, the scope in the document whose entry has
    a kind and a name in a scope here.
    """

    options: ImportOptions
    kept_ids: set[str]
    new_ids: dict[tuple[str, str], str]
    counts: dict[str, dict[str, int]]
    existing_entries: dict[str, ExistingEntry] = {}
    used_version_ids: set[str] = set()
    conflicts: list[LeftOut] = []
    problems: list[LeftOut] = []
    matched_ids: set[str] = set()
    taggings: list[Tagging] = []
    unchanged: list[tuple[str, str]] = []
    owners: dict[tuple[str, str, str], str] = {}


def is_small(document: Mapping[str, Any]) -> bool:
    """Return whether a document takes no longer than other calls may wait."""
    return sum(len(document["entries"].get(kind.plural) or ()) for kind in KINDS.values()) <= _CHUNK


def merge_document(tx: Tx, document: Mapping[str, Any], options: ImportOptions) -> Steps[ImportState]:
    """Writes a document, a chunk a step. The counts, and a problem for every item that was left out.

    Missing scopes are created; with a mapping only those that an entry still belongs to. The entries are parsed twice,
    so that a large document is never in memory as a whole.
    """
    raw = document["entries"]
    items = [
        (kind, number, raw_entry)
        for kind in KINDS.values()
        for number, raw_entry in enumerate(raw.get(kind.plural) or ())
    ]
    ids, entry_scopes, problems = set[str](), set[str](), list[LeftOut]()
    owners: dict[tuple[str, str, str], str] = {}
    for start in range(0, len(items), _CHUNK):
        for item in _chunk(items, start, options.scope_mapping):
            if isinstance(item, LeftOut):
                problems.append(item)
                continue
            entry_scopes.add(scope_key(item.scope_type, item.scope_id))
            if item.item.id is not None:
                ids.add(item.item.id)
            _add_owner(owners, item, options)
        tx = yield
    scopes = import_document.parse_scopes(document.get("scopes"))
    wanted_scopes = entry_scopes if options.scope_mapping else None
    state = _new_state(set() if options.generate_ids else ids, options)
    state.owners = owners
    # Read before the scopes are created: under skip and error only new projects get tags and relations.
    project_ids = [*(project.id for project in scopes.projects), *state.new_ids.values()]
    existing_projects = {number for number in project_ids if scope_exists(tx, "project", number)}
    state.problems += [*problems, *_add_scopes(tx, scopes, wanted_scopes)]
    yield from _import_entries(tx, state, items)
    for project in scopes.projects:
        mapped_id = state.new_ids.get(("project", project.id))
        number = mapped_id or project.id
        is_chosen = wanted_scopes is None or mapped_id or scope_key("project", project.id) in wanted_scopes
        stays = number in existing_projects and options.strategy in {"skip", "error"}
        if is_chosen and not stays and scope_exists(tx, "project", number):
            links = (project.tags, project.relations)
            state.taggings.append(Tagging("project", number, f"project {project.name}", *links, False))
    changed_ids = yield from _attach_all(tx, document.get("tags"), state)
    # An entry that was the same already counts as updated only if it got or lost a tag or a relation.
    for plural, number in state.unchanged:
        state.counts[plural]["updated" if number in changed_ids else "skipped"] += 1
    return state


def _import_entries(tx: Tx, state: ImportState, items: Sequence[Item]) -> Steps[None]:
    begin_steps(tx, len(items))
    for start in range(0, len(items), _CHUNK):
        parsed_items = _chunk(items, start, state.options.scope_mapping)
        chunk = [entry for entry in parsed_items if isinstance(entry, ParsedEntry)]
        _read_existing(tx, state, chunk)
        for entry in chunk:
            _import_entry(tx, state, entry)
            count_step(tx)
        tx = yield


def _chunk(items: Sequence[Item], start: int, scope_mapping: Mapping[str, ScopeRef]) -> list[ParsedEntry | LeftOut]:
    """Return the next entries of a document in their target scopes; for an invalid entry its problem."""
    return [_parsed(item, scope_mapping) for item in items[start : start + _CHUNK]]


def _parsed(item: Item, scope_mapping: Mapping[str, ScopeRef]) -> ParsedEntry | LeftOut:
    kind, number, raw = item
    label = import_document.entry_label(kind, None, number)
    try:
        data = import_document.plain(raw)
        label = import_document.entry_label(kind, data, number)
        return import_document.parse_entry(kind, data, label, scope_mapping)
    except (ValueError, msgspec.DecodeError) as error:
        return LeftOut(label, str(error))


def _read_existing(tx: Tx, state: ImportState, chunk: Sequence[ParsedEntry]) -> None:
    """Read the stored entries of a chunk's ids; other calls may have written since the chunk before."""
    own = [entry.item.id for entry in chunk if entry.item.id in state.kept_ids]
    state.existing_entries = {row.id: row for row in tx.all("scopes.import_merge.by_ids", ExistingEntry, ids=own)}
    version_ids = [version.id for entry in chunk for version in entry.versions if version.id is not None]
    state.used_version_ids = set(tx.all("scopes.import_merge.used_version_ids", str, ids=version_ids))


def _new_state(kept_ids: set[str], options: ImportOptions) -> ImportState:
    counts: dict[str, dict[str, int]] = {kind.plural: dict.fromkeys(OUTCOMES, 0) for kind in KINDS.values()}
    # Relations to a mapped project go to its target.
    mapped_ids = {
        ("project", source.removeprefix("project:")): target_id
        for source, (target_type, target_id) in options.scope_mapping.items()
        if source.startswith("project:") and target_type == "project" and target_id is not None
    }
    return ImportState(options, kept_ids, mapped_ids, counts)


def _import_entry(tx: Tx, state: ImportState, entry: ParsedEntry) -> None:
    """Writes one entry, or only counts it if the strategy keeps the existing entry."""
    kind, item, strategy = entry.kind, entry.item, state.options.strategy
    if problem := _scope_problem(tx, entry) or _name_problem(state, entry):
        state.problems.append(LeftOut(entry.label, problem))
        return
    existing = _match(tx, state, entry)
    number = _create_entry(tx, state, entry) if existing is None else existing.id
    if item.id is not None:
        state.matched_ids.add(number)
        state.new_ids[kind.name, item.id] = number
    if existing is not None and strategy == "error":
        where = scope_key(entry.scope_type, entry.scope_id)
        state.conflicts.append(LeftOut(entry.label, f"{kind.label} already exists: {entry.name} in {where}"))
        return
    if existing is not None and strategy == "skip":
        state.counts[kind.plural]["skipped"] += 1
        return
    if existing is None:
        state.counts[kind.plural]["created"] += 1
    elif _merge_entry(tx, state, entry, number):
        state.counts[kind.plural]["updated"] += 1
    else:
        state.unchanged.append((kind.plural, number))
    exact = existing is not None and strategy == "replace"
    tags, relations = _none_if_unset(item.tags), _none_if_unset(item.relations)
    state.taggings.append(Tagging(kind.name, number, entry.label, tags, relations, exact))


def _none_if_unset(values: Any) -> Any:
    return None if values is UNSET else values or ()


def _scope_problem(tx: Tx, entry: ParsedEntry) -> str | None:
    if entry.scope_type == GLOBAL:
        return None
    if entry.scope_type not in LABELS:
        return f"Validation error: scopeType - {entry.scope_type} is not one of {', '.join([GLOBAL, *LABELS])}"
    if entry.scope_id is None:
        return "scopeId is required for non-global scope"
    if scope_exists(tx, entry.scope_type, entry.scope_id):
        return None
    hint = f'create it, or map "{scope_key(entry.scope_type, entry.scope_id)}" with scopeMapping'
    return f"{LABELS[entry.scope_type]} not found: {entry.scope_id}. Suggestion: {hint}"


def _add_owner(owners: dict[tuple[str, str, str], str], entry: ParsedEntry, options: ImportOptions) -> None:
    """Adds the scope of an active entry: the first of a name, but that of the scope itself if there is one."""
    place, source = _place(entry), _source_scope(entry)
    if options.scope_mapping and entry.item.is_active is not False:
        owners[place] = source if source == place[1] else owners.get(place, source)


def _name_problem(state: ImportState, entry: ParsedEntry) -> str | None:
    """Return why an entry cannot have its name in the scope that its own is mapped to, None if it can."""
    place, source = _place(entry), _source_scope(entry)
    if entry.item.is_active is False or state.owners.get(place, source) == source:
        return None
    return f'{entry.kind.label} already exists: {entry.name} in {place[1]}. Suggestion: map "{source}" to another scope'


def _place(entry: ParsedEntry) -> tuple[str, str, str]:
    return entry.kind.name, scope_key(entry.scope_type, entry.scope_id), entry.name


def _source_scope(entry: ParsedEntry) -> str:
    return scope_key(entry.item.scope_type, entry.item.scope_id)


def _match(tx: Tx, state: ImportState, entry: ParsedEntry) -> ExistingEntry | None:
    """Return the existing entry by id, or by name in the same scope, unless another entry of the document was matched
    with it.

    An entry that is inactive in the document matches an active one here by id only.
    """
    kind, scope, name = entry.kind.name, scope_key(entry.scope_type, entry.scope_id), entry.name
    is_retired = entry.item.is_active is False
    same = state.existing_entries.get(entry.item.id or "")
    if same is not None and (same.kind, same.scope, normal_name(same.name)) != (kind, scope, name):
        same = None
    if same is not None and (same.active or is_retired):
        return same
    for row in tx.all("scopes.import_merge.same_name", ExistingEntry, kind=kind, name=name, scope=scope):
        alike = not row.active and row.created_at == entry.created_at if is_retired else row.active
        is_taken = entry.item.id is not None and (row.id in state.matched_ids or row.id in state.kept_ids)
        if alike and not is_taken:
            return row
    return same


def _create_entry(tx: Tx, state: ImportState, entry: ParsedEntry) -> str:
    """Creates an entry with all its versions. Its id: that of the document if it is free."""
    kind, item = entry.kind, entry.item
    own_id = item.id if item.id in state.kept_ids and item.id not in state.existing_entries else None
    number = own_id or tx.new_id(kind.id_prefix)
    created_at = entry.created_at or tx.now
    # Versions first: the row of the entry refers to its current version.
    current = ""
    for version in entry.versions:
        columns, at = _version_columns(kind, version), version.created_at or created_at
        version_id = _add_version(tx, state, kind, number, version, columns, at, _author(state, version))
        current = version_id if version is entry.current else current
    deactivated_at = None if item.is_active is not False else entry.deactivated_at or tx.now
    entries.add_imported(
        tx,
        kind,
        number,
        entry.name,
        scope_type=entry.scope_type,
        scope_id=entry.scope_id,
        category=item.category,
        priority=_priority(kind, item.priority),
        version_id=current,
        gone=deactivated_at,
        now=created_at,
        created_by=_author(state, item),
    )
    state.existing_entries[number] = ExistingEntry(
        number, kind.name, scope_key(entry.scope_type, entry.scope_id), entry.name, deactivated_at is None, created_at
    )
    return number


def _merge_entry(tx: Tx, state: ImportState, entry: ParsedEntry, number: str) -> bool:
    """Merges an entry of the document into that of the store, in a new version if a field differs. Whether it changed.

    If the document holds the newest version of this store and later versions, these are added unchanged.
    `replace` also clears the fields that the document leaves out.
    """
    kind, item, options = entry.kind, entry.item, state.options
    before = entries.get(tx, kind, number)
    version_id = _fast_forward(tx, state, entry, number)
    if version_id is None:
        fields = {field: getattr(before[1], field) for field in kind.version_fields}
        columns = _version_columns(kind, entry.current)
        if options.strategy == "update":
            columns |= {field: fields[field] for field in kind.version_fields if getattr(entry.current, field) is None}
        version_id = before[1].id
        if columns != fields:
            last = entries.latest_version(tx, number).version_num
            later = VersionItem(version_num=last + 1, change_reason=UPDATE_REASON)
            version_id = _add_version(tx, state, kind, number, later, columns, tx.now, options.imported_by)
    replace = options.strategy == "replace"
    tx.run(
        "scopes.import_merge.set_current_version",
        id=number,
        version_id=version_id,
        whole=replace,
        category=item.category,
        priority=_priority(kind, item.priority) if replace else item.priority if kind is GUIDELINE else None,
        stays=item.is_active is None,
        gone=None if item.is_active is not False else entry.deactivated_at or tx.now,
    )
    after = entries.get(tx, kind, number)
    entries.keep_replaced(tx, before[0], after[0])
    if after != before:
        entries.record(tx, kind, number, "imported", before)
    return after != before


def _fast_forward(tx: Tx, state: ImportState, entry: ParsedEntry, number: str) -> str | None:
    """Adds the later versions if the document continues the history of this store. The id of the current version."""
    latest = entries.latest_version(tx, number)
    if entry.item.id != number or all(version.id != latest.id for version in entry.versions):
        return None
    current = None
    for version in entry.versions:
        if (version.version_num or 0) > latest.version_num:
            columns, at = _version_columns(entry.kind, version), version.created_at or tx.now
            version_id = _add_version(tx, state, entry.kind, number, version, columns, at, version.created_by)
            current = version_id if version is entry.current else current
    return current


def _author(state: ImportState, item: VersionItem) -> str | None:
    return state.options.imported_by if item.created_by is None else item.created_by


def _add_version(
    tx: Tx,
    state: ImportState,
    kind: Kind,
    number: str,
    item: VersionItem,
    columns: Mapping[str, Any],
    at: str,
    author: str | None,
) -> str:
    """Adds a version. Its id: that of the document if it is free."""
    own_id = item.id if not state.options.generate_ids and item.id not in state.used_version_ids else None
    version_id = own_id or tx.new_id(kind.version_id_prefix)
    state.used_version_ids.add(version_id)
    reason, conflicting = item.change_reason, item.conflict_flag
    entries.add_version(
        tx, number, version_id, item.version_num, columns, author, reason, at=at, conflicting=conflicting
    )
    return version_id


def _version_columns(kind: Kind, item: VersionItem) -> dict[str, Any]:
    columns = {field: getattr(item, field) for field in kind.version_fields}
    if "confidence" in columns and columns["confidence"] is None:
        columns["confidence"] = 1.0
    return {field: dumps(value) if field in JSON_COLUMNS else value for field, value in columns.items()}


def _priority(kind: Kind, priority: int | None) -> int | None:
    return None if kind is not GUIDELINE else DEFAULT_PRIORITY if priority is None else priority


def _add_scopes(tx: Tx, scopes: DocumentScopes, ids: set[str] | None) -> list[LeftOut]:
    """Creates the missing scopes: those in `ids` (`project:ID`) with their parents, all for None."""
    chosen_scopes = scopes if ids is None else _with_parents(scopes, ids)
    for org in chosen_scopes.orgs:
        row_columns = {"created_at": org.created_at or tx.now, "metadata": dumps(org.metadata)}
        tx.run("scopes.hierarchy.add_org", **asdict(org) | row_columns)
    project_ids = [project.id for project in scopes.projects]
    problems = [_add_project(tx, project, project_ids) for project in chosen_scopes.projects]
    problems += [_add_session(tx, session) for session in chosen_scopes.sessions]
    return [*scopes.problems, *(problem for problem in problems if problem)]


def _with_parents(scopes: DocumentScopes, ids: set[str]) -> DocumentScopes:
    sessions = [session for session in scopes.sessions if f"session:{session.id}" in ids]
    parents = {session.project_id for session in sessions}
    projects = [project for project in scopes.projects if f"project:{project.id}" in ids or project.id in parents]
    owners = {project.org_id for project in projects}
    orgs = [org for org in scopes.orgs if f"org:{org.id}" in ids or org.id in owners]
    return DocumentScopes(orgs, projects, sessions, [])


def _add_project(tx: Tx, project: import_document.ProjectItem, project_ids: Sequence[str]) -> LeftOut | None:
    label = f"project {project.name}"
    if scope_exists(tx, "project", project.id):
        return None
    if project.org_id is not None and not scope_exists(tx, "org", project.org_id):
        return LeftOut(label, f"Organization not found: {project.org_id}")
    key = {**name_key(project.name), "org_id": project.org_id}
    same_name = [id_ for id_ in tx.all("scopes.import_merge.projects_by_name", str, **key) if id_ not in project_ids]
    # A project of the same name under another id: merging them by name would mix their entries.
    if same_name:
        hint = f'map "project:{project.id}" to project {same_name[0]} with scopeMapping'
        return LeftOut(label, f"Project already exists: {project.name}. Suggestion: {hint}")
    created_at = project.created_at or tx.now
    times = {
        "created_at": created_at,
        "updated_at": project.updated_at or created_at,
        "metadata": dumps(project.metadata),
    }
    tx.run("scopes.import_merge.add_project", **asdict(project) | times | key)
    return None


def _add_session(tx: Tx, session: import_document.SessionItem) -> LeftOut | None:
    project = session.project_id
    if project is not None and not scope_exists(tx, "project", project):
        return LeftOut(f"session {session.name or session.id}", f"Project not found: {project}")
    row_columns = {"started_at": session.started_at or tx.now, "metadata": dumps(session.metadata)}
    tx.run("scopes.hierarchy.add_session", **asdict(session) | row_columns)
    return None


def _attach_all(tx: Tx, definitions: Any, state: ImportState) -> Steps[set[str]]:
    """Attaches tags, created as the document defines them if missing, and relations: a chunk a step.

    Returns the ids of the items that got or lost any. A relation without an existing target is a problem.
    """
    definitions_by_name, problems = import_document.parse_tags(definitions)
    state.problems += problems
    _tag_ids(tx, definitions_by_name, list(definitions_by_name))
    changed_ids: set[str] = set()
    unchanged_ids = {number for _, number in state.unchanged}
    for start in range(0, len(state.taggings), _TAGGED_CHUNK):
        tx = yield
        chunk = state.taggings[start : start + _TAGGED_CHUNK]
        tag_ids = _tag_ids(tx, definitions_by_name, [name for tagging in chunk for name in tagging.tags or ()])
        used_ids = {link.id for tagging in chunk for link in tagging.relations or () if link.id is not None}
        relation_ids = set(tx.all("scopes.import_merge.used_relation_ids", str, ids=list(used_ids)))
        tagged_keys: list[tuple[str, str]] = []
        for tagging in chunk:
            tags = [tag_ids[name] for name in tagging.tags or ()]
            if tagging.tags is not None and _attach(tx, tagging, tags, recorded=tagging.id in unchanged_ids):
                changed_ids.add(tagging.id)
                if tagging.kind in KINDS:
                    tagged_keys.append((KINDS[tagging.kind].space, tagging.id))
            if tagging.relations is not None and _relate(tx, tagging, state, relation_ids):
                changed_ids.add(tagging.id)
        entries.renew_words(tx, tagged_keys)
    return changed_ids


def _tag_ids(tx: Tx, definitions_by_name: Mapping[str, TagItem], names: Sequence[str]) -> dict[str, str]:
    ids: dict[str, str] = {}
    for written_name in dict.fromkeys(names):
        name = normal_name(written_name)
        ids[written_name] = id_by_name(tx, name) or add_tag(tx, asdict(definitions_by_name.get(name) or TagItem(name)))
    return ids


def add_tag(tx: Tx, columns: Mapping[str, Any]) -> str:
    """Adds a tag under its own id, or under a new id if that is taken. Its id."""
    columns = {**columns, **name_key(columns["name"]), "created_at": columns["created_at"] or tx.now}
    fresh = tx.new_id("tag")
    for number in (columns["id"], fresh):
        tag = number and tx.one("scopes.tags.add", tag_row, **{**columns, "id": number})
        if isinstance(tag, Tag):
            return tag.id
    return fresh


def _attach(tx: Tx, tagging: Tagging, tags: Sequence[str], *, recorded: bool) -> int:
    """Attaches the tags of one item. The number of tags that it got and lost.

    The history has those of an entry without another event of the import.
    """
    change_count = 0
    for tag in tags:
        key = {"entry_type": tagging.kind, "entry_id": tagging.id, "tag_id": tag}
        entry_tag = tx.one("scopes.tags.attach", EntryTag, id=tx.new_id("et"), created_at=tx.now, **key)
        if entry_tag is not None:
            change_count += 1
            if recorded:
                entries.record_attached(tx, entry_tag)
    if not tagging.exact:
        return change_count
    removed_rows = tx.all("scopes.import_merge.detach_others", EntryTag, kind=tagging.kind, id=tagging.id, tags=tags)
    _record_removed(tx, entries.TAG_SPACE, "detached", removed_rows)
    return change_count + len(removed_rows)


def _relate(tx: Tx, tagging: Tagging, state: ImportState, used_ids: set[str]) -> int:
    """Adds the relations of one item, under ids that are not in `used_ids`. The number added and removed."""
    change_count = 0
    current_ids: list[str] = []
    for link in tagging.relations or ():
        target = state.new_ids.get((link.target_type, link.target_id), link.target_id)
        try:
            created_at = _checked_time(tx, link, target)
        except ValueError as error:
            state.problems.append(LeftOut(tagging.label, str(error)))
            continue
        number = link.id if link.id is not None and link.id not in used_ids else tx.new_id("rel")
        ends = {"source_type": tagging.kind, "source_id": tagging.id, "target_id": target}
        columns = {**asdict(link), **ends, "id": number, "created_at": created_at}
        new_relation = tx.one("scopes.relations.add", Relation, **columns)
        relation = new_relation or tx.one("scopes.relations.get", Relation, **columns)
        used_ids.add(number)
        change_count += new_relation is not None
        current_ids += [relation.id] if relation else []
    if not tagging.exact:
        return change_count
    removed_rows = tx.all(
        "scopes.import_merge.delete_other_relations", Relation, kind=tagging.kind, id=tagging.id, kept=current_ids
    )
    _record_removed(tx, RELATION_SPACE, "deleted", removed_rows)
    return change_count + len(removed_rows)


def _record_removed(tx: Tx, space: str, operation: str, rows: Sequence[EntryTag | Relation]) -> None:
    for row in rows:
        history.append(tx, space, row.id, operation, before=dumps(row))


def _checked_time(tx: Tx, link: RelationItem, target: str) -> str:
    """Return the creation time of a relation; raises ValueError if its target type, time or target is invalid."""
    if link.target_type not in TARGET_LABELS:
        unknown = f"relations.targetType - {link.target_type} is not one of {', '.join(TARGET_LABELS)}"
        raise ValueError(f"Relation {link.relation_type} left out: {unknown}")
    created_at = import_document.timestamp("relations.createdAt", link.created_at) or tx.now
    if not target_exists(tx, link.target_type, target):
        missing = f"{TARGET_LABELS[link.target_type]} not found: {link.target_id}"
        raise ValueError(f"Relation {link.relation_type} left out: {missing}")
    return created_at

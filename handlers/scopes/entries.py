"""The rows of tools, guidelines and knowledge: one implementation for all kinds; versions are only ever added."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from msgspec import Struct

from handlers.scopes import entry_kinds, entry_requests, errors
from handlers.scopes.entry_kinds import DEFAULT_PRIORITY, JSON_COLUMNS, KINDS, KNOWLEDGE, Kind, index_text
from handlers.scopes.field_types import check_changes, end_time, normal_name
from handlers.scopes.inheritance import check_scope, required_scope_id, scope_key
from handlers.scopes.results import (
    EntryRow,
    EntryTag,
    Standing,
    Version,
    VersionRow,
    dumps,
    entry_and_version,
    loads,
    to_versions,
)
from kernel.calls.dialect import Concept, IndexSource, Keys
from kernel.core.errors import Fault
from kernel.core.text import words_of_json
from kernel.core.times import stored_time
from kernel.search import index
from kernel.store import history
from kernel.store.history import PastSource, PastText
from kernel.store.transaction import Tx

CONFLICT_WINDOW = timedelta(seconds=5)  # the time of the contract
TAG_SPACE = "scopes:tags"  # the space of attachments in the history
_VERSION_COLUMNS = sorted({field for kind in KINDS.values() for field in kind.version_fields})
_DEFAULTS: Mapping[str, Any] = {"priority": DEFAULT_PRIORITY, "confidence": 1.0}
_KIND_OF_REQUEST: Mapping[type, Kind] = {
    entry_requests.AddTool: entry_kinds.TOOL,
    entry_requests.AddGuideline: entry_kinds.GUIDELINE,
    entry_requests.AddKnowledge: KNOWLEDGE,
}

EntryPair = tuple[EntryRow, VersionRow]


class Latest(NamedTuple):
    id: str
    version_num: int
    created_at: str


def add(tx: Tx, kind: Kind, request: entry_requests.Add) -> EntryPair:
    """Adds an entry with its first version; raises a Fault if the name is taken in its scope."""
    scope_id = required_scope_id(request.scope_type, request.scope_id)
    check_scope(tx, request.scope_type, scope_id)
    name = normal_name(request.name)
    entry_id, version_id = tx.new_id(kind.id_prefix), tx.new_id(kind.version_id_prefix)
    entry_id_row = tx.one(
        "scopes.entries.add",
        str,
        id=entry_id,
        kind=kind.name,
        scope_type=request.scope_type,
        scope_id=scope_id,
        name=name,
        category=request.category,
        priority=_given_or_default(request, "priority"),
        version_id=version_id,
        now=tx.now,
        created_by=request.created_by,
    )
    if entry_id_row is None:
        scope = scope_key(request.scope_type, scope_id)
        holder = tx.one("scopes.entries.id_by_name", str, kind=kind.name, name=name, scope=scope)
        raise errors.exists(kind.full_label, name, scope, kind.name_field, holder)
    tx.run("scopes.entries.mark_same_name", id=entry_id, kind=kind.name, name=name)
    add_version(tx, entry_id, version_id, 1, _version_columns(kind, request), request.created_by, "Initial version")
    return record(tx, kind, entry_id, "added")


def add_imported(
    tx: Tx, kind: Kind, entry_id: str, name: str, *, origin: index.Origin | None = None, **columns: Any
) -> None:
    """Adds an entry after its versions; marks it if others have its name, and if it is older than all of them."""
    tx.run("scopes.import_merge.add_entry", id=entry_id, kind=kind.name, name=name, **columns)
    tx.run("scopes.entries.mark_same_name", id=entry_id, kind=kind.name, name=name)
    tx.run("scopes.entries.mark_late", id=entry_id)
    record(tx, kind, entry_id, "imported", origin=origin)


def update(tx: Tx, kind: Kind, request: entry_requests.Update) -> EntryPair:
    """Adds a version; within `CONFLICT_WINDOW` of another, without `expectedVersion`, it is recorded as a conflict."""
    before = get(tx, kind, request.id)
    _check_expected_version(before[1], request.expected_version)
    check_changes(request)
    # Not the current version: an import may have made an older one current, and numbers must stay unique.
    latest = latest_version(tx, request.id)
    conflicting = request.expected_version is None and within_conflict_window(latest.created_at, tx.now)
    version_id, columns = tx.new_id(kind.version_id_prefix), _version_columns(kind, request, before[1])
    author, reason = request.updated_by, request.change_reason
    add_version(tx, request.id, version_id, latest.version_num + 1, columns, author, reason, conflicting=conflicting)
    tx.run(
        "scopes.entries.set_current_version",
        id=request.id,
        version_id=version_id,
        category=getattr(request, "category", None),
        priority=getattr(request, "priority", None),
    )
    if conflicting:
        tx.run(
            "scopes.entries.add_conflict",
            id=tx.new_id("conf"),
            entry_type=kind.name,
            entry_id=request.id,
            version_a_id=latest.id,
            version_b_id=version_id,
            now=tx.now,
        )
    after = record(tx, kind, request.id, "updated", before, reason)
    keep_replaced(tx, before[0], after[0])
    return after


def latest_version(tx: Tx, entry_id: str) -> Latest:
    """Return the version with the highest number, which is not the current version after some imports."""
    return tx.one("scopes.entries.latest", Latest, id=entry_id) or Latest("", 0, tx.now)


def add_version(
    tx: Tx,
    entry_id: str,
    version_id: str | None,
    number: int | None,
    columns: Mapping[str, Any],
    author: str | None,
    reason: str | None,
    *,
    at: str | None = None,
    conflicting: bool = False,
) -> None:
    """Adds a version, now or at a time; the other columns than `columns` are NULL."""
    tx.run(
        "scopes.entries.add_version",
        id=version_id,
        entry_id=entry_id,
        version_num=number,
        now=at or tx.now,
        conflict_flag=conflicting,
        created_by=author,
        change_reason=reason,
        **{**dict.fromkeys(_VERSION_COLUMNS), **columns},
    )


def record(
    tx: Tx,
    kind: Kind,
    entry_id: str,
    operation: str,
    before: EntryPair | None = None,
    reason: str | None = None,
    origin: index.Origin | None = None,
) -> EntryPair:
    """Records a change in the history and in the index, which holds active entries only; the entry as it is now."""
    after = get(tx, kind, entry_id)
    row, source = after[0], _source(*after, () if operation == "added" else _tags_of(tx, kind, entry_id))
    at, by = (origin.created_at, origin.writer) if origin else (None, None)
    texts = {"before": entry_text(*before) if before else None, "after": source.text if row.is_active else None}
    history.append(tx, kind.space, entry_id, operation, **texts, reason=reason, at=at, by=by)
    if row.is_active:
        index.put(tx, kind.space, entry_id, source.text, scope=source.scope, words=source.words, origin=origin)
    elif before is not None and before[0].is_active:
        index.drop(tx, kind.space, entry_id)
    return after


def keep_replaced(tx: Tx, before: EntryRow, after: EntryRow) -> None:
    """Keeps the category and the priority of an entry that has others now, for reads as of an earlier time."""
    if (before.category, before.priority) != (after.category, after.priority):
        standing = {"category": before.category, "priority": before.priority}
        tx.run("scopes.entries.keep_replaced", id=before.id, now=tx.now, **standing)


def deactivate(tx: Tx, kind: Kind, entry_id: str) -> None:
    """Deactivates an entry, which frees its name; no effect on an inactive entry."""
    before = get(tx, kind, entry_id)
    if not before[0].is_active:
        return
    tx.run("scopes.entries.deactivate", id=entry_id, now=tx.now)
    record(tx, kind, entry_id, "deactivated", before)


def get(tx: Tx, kind: Kind, entry_id: str, at: str | None = None) -> EntryPair:
    """Return an entry, active or not, with its current version or that of the time `at`; or raises a Fault."""
    if at is None:
        pair = tx.one("scopes.entries.get", entry_and_version, id=entry_id, kind=kind.name)
    else:
        pair = tx.one("scopes.entries.get_as_of", entry_and_version, id=entry_id, kind=kind.name, at=at)
    if pair is None:
        raise unknown(tx, kind, entry_id)
    return pair


def unknown(tx: Tx, kind: Kind, entry_id: str, field: str = "id") -> Fault:
    """Return the Fault for an entry that does not exist; many clients send its name for its id."""
    fault = errors.not_found(kind.full_label, entry_id, field)
    ids = tx.all("scopes.entries.ids_of_name", str, kind=kind.name, name=normal_name(entry_id))
    return errors.with_suggestion(fault, f"the {field} of {entry_id} is {' or '.join(ids)}") if ids else fault


def find(tx: Tx, kind: Kind, name: str, scopes: Sequence[str], at: str | None = None) -> EntryPair | None:
    """Return the active entry of a name in the first of the scopes that has one, now or at the time `at`."""
    if at is None:
        return tx.one("scopes.entries.find", entry_and_version, kind=kind.name, name=name, scopes=scopes)
    return tx.one("scopes.entries.find_as_of", entry_and_version, kind=kind.name, name=name, scopes=scopes, at=at)


def expired(tx: Tx, keys: Keys, at: str) -> list[tuple[str, str]]:
    """Return those of the memories that are knowledge whose validity has ended at a time."""
    ids = [key for space, key in keys if space == KNOWLEDGE.space]
    return [(KNOWLEDGE.space, id_) for id_ in tx.all("scopes.entries.expired", str, ids=ids, at=at)] if ids else []


def versions(tx: Tx, kind: Kind, entry_id: str, at: str | None = None) -> list[Version]:
    """Return the versions of an entry up to the time `at`, newest first; raises a Fault for an unknown id."""
    row, _ = get(tx, kind, entry_id)
    rows = tx.all("scopes.entries.versions", VersionRow, id=entry_id, at=at)
    return to_versions(row, rows, tx.all("scopes.entries.replaced", Standing, ids=[entry_id]))


def record_attached(tx: Tx, entry_tag: EntryTag) -> None:
    """Records in the history that an import attached a tag, so that an undo finds the entry again."""
    history.append(tx, TAG_SPACE, entry_tag.id, "attached", after=dumps(entry_tag))


def renew_words(tx: Tx, keys: Keys) -> None:
    """Index the tags that entries have now; the authors and times of the entries stay."""
    sources = {(source.space, source.key): source for source in sources_of(tx, keys)}
    docs = index.documents(tx, index.doc_ids(tx, [*sources])).values()
    words = [(doc.doc, doc.text, sources[doc.space, doc.key].words) for doc in docs]
    index.set_words(tx, [(doc, index.indexed_words(text, beside)) for doc, text, beside in words])


def sources(tx: Tx) -> Iterator[IndexSource]:
    for row, current, tags in tx.each("scopes.entries.all_for_index", _entry_and_tags):
        yield _source(row, current, tags)


def _entry_and_tags(*columns: Any) -> tuple[EntryRow, VersionRow, list[str]]:
    return *entry_and_version(*columns[:-1]), loads(columns[-1]) or []


def sources_of(tx: Tx, keys: Keys) -> Iterator[IndexSource]:
    """Return the entries of some keys; that of an attachment is the entry that has or had the tag."""
    names = {kind.space: kind.name for kind in KINDS.values()}
    for space, key in keys:
        if space == TAG_SPACE:
            yield from sources_of(tx, _tagged(tx, key))
            continue
        pair = tx.one("scopes.entries.get", entry_and_version, id=key, kind=names.get(space, ""))
        if pair is not None and pair[0].is_active:
            yield _source(*pair, _tags_of(tx, KINDS[pair[0].kind], key))


def _tags_of(tx: Tx, kind: Kind, entry_id: str) -> list[str]:
    return tx.all("scopes.tags.names_of_entry", str, entry_id=entry_id, entry_type=kind.name)


def _tagged(tx: Tx, attachment: str) -> list[tuple[str, str]]:
    """Return the entry of an attachment that an event of the history names."""
    for event in history.read(tx, TAG_SPACE, attachment):
        row = loads(event.before or event.after)
        kind = KINDS.get(str(row.get("entryType"))) if isinstance(row, dict) else None
        if kind is not None:
            return [(kind.space, str(row.get("entryId")))]
    return []


def _source(row: EntryRow, current: VersionRow, tags: Sequence[str] = ()) -> IndexSource:
    kind, values = KINDS[row.kind], current._asdict()
    first, *others = kind.indexed_fields
    columns = {name: loads(value) if name in JSON_COLUMNS else value for name, value in values.items()}
    columns |= {"category": row.category, "priority": row.priority}
    names = (*(name for name in kind.version_fields if name not in kind.indexed_fields), "category", "priority")
    fields = {name: value for name in names if (value := columns[name]) != _DEFAULTS.get(name)}
    texts = {name: text for name in others if (text := values[name])}
    concept = Concept(row.name, body=values[first] or "", tags=tags, fields=fields, texts=texts)
    scope = scope_key(row.scope_type, row.scope_id)
    parts = (words_of_json(values[name]) for name in kind.version_fields if name in JSON_COLUMNS and values[name])
    words = "\n".join([*([row.category] if row.category else ()), *parts, *tags])
    return IndexSource(kind.space, row.id, scope, entry_text(row, current), words, concept)


def past_sources(tx: Tx, texts: Sequence[PastText]) -> list[PastSource | None]:
    """Return the indexed texts of versions; an entry never leaves its scope."""
    scopes = dict(tx.rows("scopes.entries.scopes_of", ids=[text.key for text in texts]))
    spaces = {kind.space for kind in KINDS.values()}
    return [PastSource(scopes.get(text.key, ""), text.text) if text.space in spaces else None for text in texts]


def texts_to_embed(request: Struct) -> list[str]:
    """Return the texts that a call embeds: that of the new entry for add, none for other actions."""
    if not isinstance(request, entry_requests.Add):
        return []
    kind = _KIND_OF_REQUEST[type(request)]
    values = {field: getattr(request, field) for field in kind.indexed_fields}
    return [index_text(kind, normal_name(request.name), values)]


def entry_text(row: EntryRow, current: VersionRow) -> str:
    return index_text(KINDS[row.kind], row.name, current._asdict())


def within_conflict_window(earlier: str, later: str) -> bool:
    return abs(stored_time(later) - stored_time(earlier)) < CONFLICT_WINDOW


def _given_or_default(request: Any, field: str) -> Any:
    argument = getattr(request, field, None)
    return _DEFAULTS.get(field) if argument is None and hasattr(request, field) else argument


def _version_columns(
    kind: Kind, request: entry_requests.Add | entry_requests.Update, before: VersionRow | None = None
) -> dict[str, Any]:
    """Return the columns of a new version: the arguments, completed from the previous version."""
    columns: dict[str, Any] = {}
    for field in kind.version_fields:
        argument = getattr(request, field)
        if argument is None:
            columns[field] = _given_or_default(request, field) if before is None else getattr(before, field)
        elif field == "valid_until":
            columns[field] = end_time("validUntil", argument) if argument else None
        else:
            columns[field] = dumps(argument) if field in JSON_COLUMNS else argument
    return columns


def _check_expected_version(current: VersionRow, expected_version: int | None) -> None:
    if expected_version is not None and expected_version != current.version_num:
        raise errors.conflict(
            f"Version conflict: expectedVersion is {expected_version}, the current version is {current.version_num}",
            field="expectedVersion",
            expectedVersion=expected_version,
            currentVersion=current.version_num,
            currentVersionId=current.id,
        )

"""Takes rules of other programs into `scopes`: guidelines of a project, which is made if there is none."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from handlers.scopes import entries
from handlers.scopes.entry_kinds import GUIDELINE
from handlers.scopes.field_types import normal_name
from handlers.scopes.hierarchy import UpdateProject, memory_project
from handlers.scopes.import_entries import DEFAULT_PRIORITY, VERSION_COLUMNS
from handlers.scopes.inheritance import GLOBAL
from handlers.scopes.tags import attach, create, id_by_name
from kernel.memories.import_records import KEPT, UPDATED, Record, stable_id
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_AUTHOR = "import"


class _Project(NamedTuple):
    id: str
    root: str | None


class _Known(NamedTuple):
    """A guideline that is here: the reason of its first version, the root of its project, and its text.

    `author` is that of the current version, `imported` the text of the last version of an import.
    """

    id: str
    reason: str | None
    root: str | None
    is_active: int
    content: str | None
    rationale: str | None
    author: str | None
    imported: str | None


def take(tx: Tx, records: Sequence[Record]) -> list[bool | str]:
    """Adds the guidelines whose id is not there, and versions of those that have changed in their source."""
    every = [number for record in records for number in _ids(record)]
    known = {row.id: row for row in tx.all("scopes.intake.known", _Known, ids=every)}
    ids = [_id(record, known) for record in records]
    taken = [_outcome(record, known.get(number)) for record, number in zip(records, ids, strict=True)]
    for record, number, outcome in zip(records, ids, taken, strict=True):
        if not tx.readonly and outcome is True:
            _add(tx, record, number)
        elif not tx.readonly and outcome == UPDATED:
            _update(tx, record, number)
    return taken


def _outcome(record: Record, known: _Known | None) -> bool | str:
    if known is None:
        return True
    if not known.is_active or (known.content, known.rationale) == (record.text, record.details.get("rationale")):
        return False
    if known.author == _AUTHOR:
        return UPDATED
    return KEPT if known.imported != record.text else False


def _update(tx: Tx, record: Record, number: str) -> None:
    """Adds a version with the text of the source."""
    row, current = entries.get(tx, GUIDELINE, number)
    before = entries.entry_text(row, current)
    version = tx.new_id(GUIDELINE.version_id_prefix)
    _add_version(tx, record, number, version, current.version_num + 1, tx.now)
    tx.run("scopes.entries.set_current_version", id=number, version_id=version, category=None, priority=None)
    row, current = entries.get(tx, GUIDELINE, number)
    text = entries.entry_text(row, current)
    history.append(tx, GUIDELINE.space, number, "imported", before=before, after=text)
    index.put(tx, GUIDELINE.space, number, text, scope=entries.entry_scope_key(row))


def _add_version(tx: Tx, record: Record, number: str, version: str, version_num: int, at: str) -> None:
    columns = {**dict.fromkeys(VERSION_COLUMNS), "content": record.text, "rationale": record.details.get("rationale")}
    tx.run(
        "scopes.entries.add_version",
        id=version,
        entry_id=number,
        version_num=version_num,
        now=at,
        created_by=_AUTHOR,
        change_reason=_reason(record),
        conflict_flag=0,
        **columns,
    )


def _ids(record: Record) -> tuple[str, str]:
    """Return the id by the name of the project, and that by its root, if another project has the first."""
    prefix, root = GUIDELINE.id_prefix, record.details["root"]
    return stable_id(prefix, record.place, record.key), stable_id(prefix, record.place, root, record.key)


def _id(record: Record, known: Mapping[str, _Known]) -> str:
    by_name, by_root = _ids(record)
    first = known.get(by_name)
    if first is None or by_root in known:
        return by_root if by_root in known else by_name
    # Before the reason had the root, only the project told it.
    was_known_by_file = first.reason == record.origin["file"] and first.root in {None, record.details["root"]}
    return by_name if was_known_by_file or first.reason == _reason(record) else by_root


def _reason(record: Record) -> str:
    """Return the path of the file of a record."""
    return f"{record.details['root']}/{record.origin['file']}"


def _add(tx: Tx, record: Record, number: str) -> None:
    project = _project(tx, record) if record.place else None
    created, version = record.created_at or tx.now, stable_id(GUIDELINE.version_id_prefix, number)
    _add_version(tx, record, number, version, 1, created)
    tx.run(
        "scopes.import_entries.add",
        id=number,
        kind=GUIDELINE.name,
        scope_type=GLOBAL if project is None else "project",
        scope_id=project,
        name=normal_name(record.title),
        category=record.category or None,
        priority=record.details.get("priority", DEFAULT_PRIORITY),
        version_id=version,
        gone=None,
        now=created,
        created_by=_AUTHOR,
    )
    entries.mark_imported(tx, GUIDELINE, number, normal_name(record.title))
    _index(tx, record, number, created)
    for tag in map(normal_name, record.tags):
        attach(tx, GUIDELINE.name, number, id_by_name(tx, tag) or create(tx, tag)[0].id)


def _index(tx: Tx, record: Record, number: str, created: str) -> None:
    row, current = entries.get(tx, GUIDELINE, number)
    writer, text = ("scopes", *tx.call_context.writer[1:]), entries.entry_text(row, current)
    origin = index.Origin(writer, created, record.updated_at or created)
    history.append(tx, GUIDELINE.space, number, "imported", after=text, at=created, by=writer)
    index.put(tx, GUIDELINE.space, number, text, scope=entries.entry_scope_key(row), origin=origin)


def _project(tx: Tx, record: Record) -> str:
    """Return the project of a root, or of a name that was given; else of the name without a root, else a new one."""
    name, root = normal_name(record.place), record.details["root"]
    named = {"fold": name.casefold(), "org_id": None}
    is_named = record.details["is_named"]
    found = tx.one("scopes.intake.project", _Project, root=root, is_named=is_named, **named)
    if found is not None:
        if found.root is None and not is_named:
            memory_project(tx, UpdateProject(found.id, root_path=root))
        return found.id
    number = stable_id("proj", name)
    if tx.one("scopes.inheritance.exists", int, type="project", id=number):
        number = stable_id("proj", name, root)
    tx.run(
        "scopes.import_scopes.add_project",
        id=number,
        name=name,
        description=None,
        root_path=root,
        now=tx.now,
        updated_at=tx.now,
        metadata=None,
        **named,
    )
    return number

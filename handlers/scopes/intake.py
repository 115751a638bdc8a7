"""Takes rules of other programs into `scopes`: guidelines of a project, which is made if there is none."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from handlers.scopes import entries
from handlers.scopes.entry_kinds import DEFAULT_PRIORITY, GUIDELINE
from handlers.scopes.field_types import name_key, normal_name
from handlers.scopes.hierarchy import UpdateProject, memory_project
from handlers.scopes.inheritance import GLOBAL, scope_exists
from handlers.scopes.tags import attach, create
from kernel.memories.import_records import DELETED, IMPORT, KEPT, PARTS, UPDATED, Record, stable_id
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_AUTHOR = "import"


class _Project(NamedTuple):
    id: str
    root: str | None


class _Known(NamedTuple):
    """A guideline that is here: the reason of its first version, the root of its project, its name and its text.

    `author` is that of the current version, `imported` the text of the last version of an import, and `reasoned` its
    rationale.
    """

    id: str
    reason: str | None
    root: str | None
    is_active: int
    name: str
    content: str | None
    rationale: str | None
    author: str | None
    imported: str | None
    reasoned: str | None


def take(tx: Tx, records: Sequence[Record]) -> list[int | str]:
    """Adds the guidelines whose id is not there, and versions of those that have changed in their source."""
    parts = [record for record in records if record.kind == PARTS]
    outcomes = iter(_take(tx, [record for record in records if record.kind != PARTS]))
    return [_deactivate_others(tx, record) if record in parts else next(outcomes) for record in records]


def _deactivate_others(tx: Tx, record: Record) -> int:
    """Deactivates the guidelines of sections that a file no longer has, or of files that a project no longer has;
    returns how many.
    """
    other_ids = _of_other_files(tx, record) if "files" in record.details else _of_other_sections(tx, record)
    for number in [] if tx.readonly else other_ids:
        entries.deactivate(tx, GUIDELINE, number)
    return len(other_ids)


def _of_other_sections(tx: Tx, record: Record) -> list[str]:
    keys = [record._replace(key=key) for key in record.details["keys"]]
    record_ids = {number for key in keys for number in _ids(key)}
    numbers = tx.all("scopes.intake.of_file", str, reason=_reason(record), **_place(record))
    return [number for number in numbers if number not in record_ids]


def _of_other_files(tx: Tx, record: Record) -> list[str]:
    root = record.details["root"]
    reasons = {f"{root}/{name}" for name in record.details["files"]}
    rows = tx.rows("scopes.intake.of_root", **_place(record))
    return [id_ for id_, reason in rows if reason not in reasons and (reason or "").startswith(f"{root}/")]


def _place(record: Record) -> dict[str, Any]:
    details = {name: record.details[name] for name in ("root", "is_named")}
    return {"fold": name_key(record.place)["fold"], **details}


def _take(tx: Tx, records: Sequence[Record]) -> list[bool | str]:
    every = [number for record in records for number in _ids(record)]
    rows = {row.id: row for row in tx.all("scopes.intake.known", _Known, ids=every)}
    ids = [_id(record, rows) for record in records]
    outcomes = [_outcome(tx, record, rows.get(number)) for record, number in zip(records, ids, strict=True)]
    for record, number, outcome in zip(records, ids, outcomes, strict=True):
        if not tx.readonly and outcome is True:
            _add(tx, record, number)
        elif not tx.readonly and outcome == UPDATED:
            _update(tx, record, number)
    return outcomes


def _outcome(tx: Tx, record: Record, row: _Known | None) -> bool | str:
    if row is None:
        return True
    if not row.is_active:  # of a section that is back, or since somebody has deactivated it
        events = history.read(tx, GUIDELINE.space, row.id)
        return UPDATED if events and events[-1].tool.startswith(IMPORT) else DELETED
    there = (record.text, record.details.get("rationale"), normal_name(record.title))
    if (row.content, row.rationale, row.name) == there:
        return False
    if row.author == _AUTHOR:
        return UPDATED
    return KEPT if (row.imported, row.reasoned, row.name) != there else False  # only an import changes a name


def _update(tx: Tx, record: Record, number: str) -> None:
    before = entries.get(tx, GUIDELINE, number)
    version = tx.new_id(GUIDELINE.version_id_prefix)
    _add_version(tx, record, number, version, before[1].version_num + 1, tx.now)
    tx.run("scopes.entries.set_current_version", id=number, version_id=version, category=None, priority=None)
    name = normal_name(record.title)
    if name != before[0].name or not before[0].is_active:
        tx.run("scopes.intake.renew", id=number, name=name)
        tx.run("scopes.entries.mark_same_name", id=number, kind=GUIDELINE.name, name=name)
    entries.record(tx, GUIDELINE, number, "imported", before)


def _add_version(tx: Tx, record: Record, number: str, version: str, version_num: int, at: str) -> None:
    columns = {"content": record.text, "rationale": record.details.get("rationale")}
    entries.add_version(tx, number, version, version_num, columns, _AUTHOR, _reason(record), at=at)


def _ids(record: Record) -> tuple[str, str]:
    """Return the id by the name of the project, and that by its root, if another project has the first."""
    prefix, root = GUIDELINE.id_prefix, record.details["root"]
    return stable_id(prefix, record.place, record.key), stable_id(prefix, record.place, root, record.key)


def _id(record: Record, rows: Mapping[str, _Known]) -> str:
    by_name, by_root = _ids(record)
    first = rows.get(by_name)
    if first is None or by_root in rows:
        return by_root if by_root in rows else by_name
    # Before the reason had the root, only the project told it.
    was_known_by_file = first.reason == record.origin["file"] and first.root in {None, record.details["root"]}
    return by_name if was_known_by_file or first.reason == _reason(record) else by_root


def _reason(record: Record) -> str:
    return f"{record.details['root']}/{record.origin['file']}"


def _add(tx: Tx, record: Record, number: str) -> None:
    project = _project(tx, record) if record.place else None
    created_at, version = record.created_at or tx.now, stable_id(GUIDELINE.version_id_prefix, number)
    _add_version(tx, record, number, version, 1, created_at)
    entries.add_imported(
        tx,
        GUIDELINE,
        number,
        normal_name(record.title),
        origin=index.Origin(("scopes", *tx.writer[1:]), created_at, record.updated_at or created_at),
        scope_type=GLOBAL if project is None else "project",
        scope_id=project,
        category=record.category or None,
        priority=record.details.get("priority", DEFAULT_PRIORITY),
        version_id=version,
        gone=None,
        now=created_at,
        created_by=_AUTHOR,
    )
    for tag in map(normal_name, record.tags):
        attach(tx, GUIDELINE.name, number, create(tx, tag)[0].id)


def _project(tx: Tx, record: Record) -> str:
    """Return the project of a root, or of a chosen name; else of the name without a root, else a new project, which has
    the root unless another has.
    """
    name, root = normal_name(record.place), record.details["root"]
    name_columns = {**name_key(name), "org_id": None}
    is_named = record.details["is_named"]
    project = tx.one("scopes.intake.project", _Project, root=root, is_named=is_named, **name_columns)
    if project is not None:
        if project.root is None and not is_named:
            memory_project(tx, UpdateProject(project.id, root_path=root))
        return project.id
    number = stable_id("proj", name)
    if scope_exists(tx, "project", number):
        number = stable_id("proj", name, root)
    is_taken = tx.one("scopes.intake.project", _Project, root=root, is_named=False, name="", fold="", org_id=None)
    row_columns = {"id": number, "root_path": None if is_taken else root, "description": None, "metadata": None}
    tx.run("scopes.import_merge.add_project", created_at=tx.now, updated_at=tx.now, **row_columns, **name_columns)
    return number

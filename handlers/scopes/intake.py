"""Takes rules of other programs into `scopes`: guidelines of a project, which is made if there is none."""

from collections.abc import Sequence

from handlers.scopes import entries
from handlers.scopes.entry_kinds import GUIDELINE
from handlers.scopes.field_types import normal_name
from handlers.scopes.import_entries import DEFAULT_PRIORITY, VERSION_COLUMNS
from handlers.scopes.inheritance import GLOBAL
from handlers.scopes.tags import attach, create, id_by_name
from kernel.memories.import_records import Record, stable_id
from kernel.search import index
from kernel.store import history
from kernel.store.transaction import Tx

_AUTHOR = "import"


def take(tx: Tx, records: Sequence[Record]) -> list[bool]:
    """Adds the guidelines whose id is not there; a read only says which these are."""
    ids = [stable_id(GUIDELINE.id_prefix, record.place, record.key) for record in records]
    known = set(tx.all("scopes.intake.known", str, ids=ids))
    if not tx.readonly:
        for record, number in zip(records, ids, strict=True):
            if number not in known:
                _add(tx, record, number)
    return [number not in known for number in ids]


def _add(tx: Tx, record: Record, number: str) -> None:
    project = _project(tx, record) if record.place else None
    created, version = record.created_at or tx.now, stable_id(GUIDELINE.version_id_prefix, number)
    columns = {**dict.fromkeys(VERSION_COLUMNS), "content": record.text, "rationale": record.details.get("rationale")}
    tx.run(
        "scopes.entries.add_version",
        id=version,
        entry_id=number,
        version_num=1,
        now=created,
        created_by=_AUTHOR,
        change_reason=record.origin.get("file"),
        conflict_flag=0,
        **columns,
    )
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
    """Return the project of the name of a place; a new one if there is none."""
    name = normal_name(record.place)
    here = {"fold": name.casefold(), "org_id": None}
    found = tx.one("scopes.import_scopes.projects_by_name", str, **here)
    if found is not None:
        return found
    number = stable_id("proj", name)
    tx.run(
        "scopes.import_scopes.add_project",
        id=number,
        name=name,
        description=None,
        root_path=record.details.get("root"),
        now=tx.now,
        updated_at=tx.now,
        metadata=None,
        **here,
    )
    return number

"""`quipu import project-brain DIR`: imports the files of project-brain, the original of `brain`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import astuple

from handlers.brain import import_rows
from handlers.brain.base import databases, embedding_columns, space
from handlers.brain.encrypted_file import decrypt, is_encrypted
from handlers.brain.import_rows import Event, required_text, text, time
from handlers.brain.index_text import (
    ACTIVE,
    ARCHIVED,
    entity_source,
    memory_source,
    note_source,
    resource_source,
    update_index,
)
from handlers.brain.schemas import Entity, Link, Memory, Note, Resource
from kernel.errors import Fault
from kernel.store import history
from kernel.store.external import ExternalDatabase, open_external
from kernel.store.progress import expect, steps
from kernel.store.transaction import Tx
from kernel.tools import Imported, IndexSource

ROWS_PER_INSERT = 1000  # bounds the JSON text of one statement
TABLES: tuple[str, ...] = (
    "memories",
    "entities",
    "links",
    "memory_history",
    "notes",
    "resources",
    "config",
    "query_log",
)
TABLES_WITH_TAGS = ("memories", "entities", "notes", "resources")
_INDEX_TABLE_MARKS = ("_fts", "vec_")
S = TypeVar("S", Memory, Entity, Link, Note, Resource)


class _LinkEnd(NamedTuple):
    kind: str
    id: str


class _ImportedLink(NamedTuple):
    db: str
    id: str
    source: _LinkEnd
    target: _LinkEnd


class _DatabaseImport(NamedTuple):
    counts: dict[str, int]
    links: list[_ImportedLink]
    remarks: list[str]


def import_files(tx: Tx, path: Path, password: str | None) -> Imported:
    """Imports the files of a folder, one for each database.

    Rows whose id exists are skipped, so a second import adds only new rows. Vectors are not imported: texts are
    embedded again.
    """
    known = databases(tx)
    files = {db: path / f"{db}.db" for db in known if (path / f"{db}.db").is_file()}
    if not files:
        raise Fault("invalid", f"There is no {' or '.join(f'{db}.db' for db in known)} in {path.name or path}.")
    counts = dict.fromkeys(TABLES, 0)
    other_files = sorted(file.name for file in path.glob("*.db") if file.stem not in known)
    remarks = [f"{name}: left out, as it is none of the databases {', '.join(known)}" for name in other_files]
    links: list[_ImportedLink] = []
    with TemporaryDirectory(prefix="quipu-") as folder:
        for db, file in files.items():
            with open_external(_decrypted(file, password, Path(folder))) as source:
                expect(tx, sum(len(source.rows(table)) for table in TABLES_WITH_TAGS))
                brought = _import_database(tx, db, source)
            counts = {name: counts[name] + brought.counts[name] for name in TABLES}
            remarks += [f"{db}: {remark}" for remark in brought.remarks]
            links += brought.links
    return Imported(counts, remarks + _dangling_link_remarks(tx, links))


def _decrypted(file: Path, password: str | None, folder: Path) -> Path:
    """The file, or a decrypted copy in `folder` if it is encrypted."""
    if not is_encrypted(file):
        return file
    if password is None:
        raise Fault("invalid", f"{file.name} is encrypted: name the variable with its password by --password-env.")
    return decrypt(file, password, folder / file.name)


def _import_database(tx: Tx, db: str, source: ExternalDatabase) -> _DatabaseImport:
    counts = dict.fromkeys(TABLES, 0)
    links = _import_links(tx, db, source)
    counts["memories"], counts["memory_history"] = _import_memories(tx, db, source)
    counts["entities"] = _import_entities(tx, db, source)
    counts["notes"] = _import_notes(tx, db, source)
    counts["resources"] = _import_resources(tx, db, source)
    counts["links"] = len(links)
    counts["config"] = _import_config(tx, source)
    queries = [import_rows.query(row, db, tx.now) for row in source.rows("query_log")]
    counts["query_log"] = tx.run("brain.querylog.insert", rows=queries)
    return _DatabaseImport(counts, links, _skipped_remarks(source, counts))


def _import_memories(tx: Tx, db: str, source: ExternalDatabase) -> tuple[int, int]:
    """The number of new memories, and of events of these or of memories that were deleted in the source."""
    found = [import_rows.memory(row, tx.now, embedding_columns(tx)) for row in source.rows("memories")]
    new = _insert_new(found, lambda rows: tx.all("brain.import_project_brain.memories", str, db=db, rows=rows))
    here = space(tx, db)
    events = _events(tx, here, source, {row.id for row in new})
    _append_history(tx, here, new, events)
    _index(tx, [memory_source(here, row) for row in new if row.status == ACTIVE])
    return len(new), len(events)


def _events(tx: Tx, here: str, source: ExternalDatabase, new: set[str]) -> list[Event]:
    """The events of new memories and of memories without history here, in order."""
    events = [
        import_rows.event(row, tx.now) for row in source.rows("memory_history") if required_text(row, "memory_id")
    ]
    others = {event.key for event in events} - new
    unknown = {key for key in others if not history.read(tx, here, key)}
    mine = [event for event in events if event.key in new | unknown]
    return sorted(mine, key=lambda event: (event.at, event.operation != "created"))


def _append_history(tx: Tx, here: str, new: Sequence[Memory], events: Sequence[Event]) -> None:
    """Appends the events; the history of each new memory is completed up to its current content."""
    by_memory: dict[str, list[Event]] = {row.id: [] for row in new}
    for event in events:
        by_memory.setdefault(event.key, []).append(event)
    for row in new:
        by_memory[row.id] = import_rows.complete_history(row, by_memory[row.id])
    for key, operation, before, after, reason, at in (event for own in by_memory.values() for event in own):
        history.append(tx, here, key, operation, before=before, after=after, reason=reason, at=at)


def _import_entities(tx: Tx, db: str, source: ExternalDatabase) -> int:
    found = [import_rows.entity(row, tx.now, embedding_columns(tx)) for row in source.rows("entities")]
    new = _insert_new(found, lambda rows: tx.all("brain.import_project_brain.entities", str, db=db, rows=rows))
    _index(tx, [entity_source(space(tx, db), row) for row in new if row.status == ACTIVE])
    return len(new)


def _import_notes(tx: Tx, db: str, source: ExternalDatabase) -> int:
    found = [import_rows.note(row, db, tx.now, embedding_columns(tx)) for row in source.rows("notes")]
    new = _insert_new(found, lambda rows: tx.all("brain.import_project_brain.notes", str, rows=rows))
    _index(tx, [note_source(space(tx, db), row) for row in new])
    return len(new)


def _import_resources(tx: Tx, db: str, source: ExternalDatabase) -> int:
    found = [import_rows.resource(row, db, tx.now, embedding_columns(tx)) for row in source.rows("resources")]
    new = _insert_new(found, lambda rows: tx.all("brain.import_project_brain.resources", str, rows=rows))
    _index(tx, [resource_source(space(tx, db), row) for row in new if row.status != ARCHIVED])
    return len(new)


def _import_links(tx: Tx, db: str, source: ExternalDatabase) -> list[_ImportedLink]:
    found = [import_rows.link(row, tx.now) for row in source.rows("links")]
    new = _insert_new(found, lambda rows: tx.all("brain.import_project_brain.links", str, db=db, rows=rows))
    return [
        _ImportedLink(db, row.id, _LinkEnd(row.source_type, row.source_id), _LinkEnd(row.target_type, row.target_id))
        for row in new
    ]


def _import_config(tx: Tx, source: ExternalDatabase) -> int:
    rows = [
        (
            required_text(row, "key"),
            required_text(row, "value"),
            text(row, "description"),
            time(row, "updated_at") or tx.now,
        )
        for row in source.rows("config")
    ]
    return len(tx.all("brain.import_project_brain.config", str, rows=rows))


def _insert_new(found: Sequence[S], insert: Callable[[list[tuple[Any, ...]]], list[str]]) -> list[S]:
    """Inserts rows and returns the new ones; a row without an id is skipped."""
    kept: list[S] = []
    for start in range(0, len(found), ROWS_PER_INSERT):
        batch = [row for row in found[start : start + ROWS_PER_INSERT] if row.id]
        new = set(insert([astuple(row) for row in batch]))
        kept += [row for row in batch if row.id in new]
    return kept


def _index(tx: Tx, sources: Sequence[IndexSource]) -> None:
    for source in steps(tx, sources):
        update_index(tx, source)


def _skipped_remarks(source: ExternalDatabase, counts: dict[str, int]) -> list[str]:
    """A line for each table with skipped rows, and for each unknown table."""
    remarks: list[str] = []
    for table in source.tables():
        if any(mark in table for mark in _INDEX_TABLE_MARKS):
            continue
        count = len(source.rows(table))
        if table in counts and count > counts[table]:
            remarks.append(f"{count - counts[table]} of {count} rows of {table} were there already or have no id")
        elif table not in counts and count:
            remarks.append(f"{count} rows of {table} were left out, as nothing here holds them")
    return _tag_remarks(source) + remarks


def _tag_remarks(source: ExternalDatabase) -> list[str]:
    """A line for each table with tags that are not a JSON list."""
    odd = {
        table: sum(import_rows.odd_tags(row) for row in source.rows(table) if required_text(row, "id"))
        for table in TABLES_WITH_TAGS
    }
    return [
        f"{count} rows of {table} have tags that are no JSON list; what stands between commas was taken for tags"
        for table, count in odd.items()
        if count
    ]


def _dangling_link_remarks(tx: Tx, links: Sequence[_ImportedLink]) -> list[str]:
    """A line for each end of a link that exists in no database; the link itself is kept."""
    ends = list(dict.fromkeys(end for link in links for end in (link.source, link.target)))
    absent = set(tx.all("brain.links.missing_ends", _LinkEnd, ends=ends, databases=databases(tx)))
    return [
        f"{link.db}: link {link.id} was kept, though there is no {end.kind} {end.id}"
        for link in links
        for end in (link.source, link.target)
        if end in absent
    ]

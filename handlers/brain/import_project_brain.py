"""`quipu import project-brain DIR`: imports the files of project-brain, the original of `brain`."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from handlers.brain import import_rows
from handlers.brain.base import DATABASES, databases, embedding_columns, space
from handlers.brain.encrypted_file import decrypt, is_encrypted
from handlers.brain.import_rows import Event, Item, Row, required_text, time
from handlers.brain.index_text import KIND_OF, is_indexed, update_index
from handlers.brain.links import LinkEnd
from handlers.brain.repository import insert_new
from handlers.brain.schemas import Entity, Link, Memory, Note, Resource
from kernel.core.checkout import Refused, open_file
from kernel.core.errors import Fault
from kernel.engines.foreign_file import ExternalDatabase, open_external, text_of
from kernel.memories.import_records import Imported, Source
from kernel.store import history
from kernel.store.long_work import Steps, begin_steps, count_step
from kernel.store.transaction import SLICE_BYTES, Tx

_BATCH_ROWS = 100  # of one statement and one step
_BATCH_BYTES = SLICE_BYTES // 2
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
ImportBatch = Callable[[Tx, "_File", Sequence[Row]], int]  # imports a batch of rows; returns the number of new rows


class _File(NamedTuple):
    """The file of a database: the result of its import, and the remarks on its links."""

    db: str
    source: ExternalDatabase
    counts: dict[str, int]
    odd_tags: dict[str, int]
    link_remarks: list[str]


def import_files(source: Source) -> Steps[Imported]:
    """Imports the files of a folder, each with a database.

    Rows whose id exists are skipped, so a second import adds only new rows. Vectors are not imported: texts are
    embedded again.
    """
    path, dbs = source.path, source.settings[DATABASES]
    names = {db: f"{db}.db" for db in dbs if (path / f"{db}.db").is_file()}
    readable = {db: path / name for db, name in names.items() if not _refusal(path, name)}
    if not readable:
        raise Fault("invalid", f"There is no {' or '.join(f'{db}.db' for db in dbs)} in {path.name or path}.")
    further = sorted(file.name for file in path.glob("*.db") if file.stem not in dbs)
    remarks = [f"{name}: left out, as it is none of the databases {', '.join(dbs)}" for name in further]
    remarks += [f"{name}: left out, as it is {why}" for name in names.values() if (why := _refusal(path, name))]
    with ExitStack() as stack:
        files = [_opened(stack, db, file, source) for db, file in readable.items()]
        tx = yield
        begin_steps(tx, sum(file.source.count(table) for file in files for table in TABLES))
        for file in files:
            for table, import_batch in _IMPORTS.items():
                yield from _import_table(file, table, import_batch)
            yield from _import_other_history(file)
        for file in files:  # the ends of a link may be in any of the files
            yield from _import_table(file, "links", _import_links)
        counts = {table: sum(file.counts[table] for file in files) for table in TABLES}
        remarks += [f"{file.db}: {remark}" for file in files for remark in _skipped_remarks(file)]
    return Imported(counts, remarks + [f"{file.db}: {remark}" for file in files for remark in file.link_remarks])


def _refusal(folder: Path, name: str) -> str:
    try:
        os.close(open_file(str(folder), name))
    except Refused as refused:
        return str(refused)
    except OSError:  # opening it says so
        return ""
    return ""


def _opened(stack: ExitStack, db: str, file: Path, origin: Source) -> _File:
    """Return the file of a database, once all that is imported from it has been found readable."""
    source = stack.enter_context(open_external(_decrypted(file, origin.password, origin.copies), origin.copies))
    source.check(dict.fromkeys(TABLES, ()))
    source.index("memory_history", "memory_id")
    return _File(db, source, dict.fromkeys(TABLES, 0), dict.fromkeys(TABLES_WITH_TAGS, 0), [])


def _decrypted(file: Path, password: str | None, folder: Path) -> Path:
    if not is_encrypted(file):
        return file
    if password is None:
        raise Fault("invalid", f"{file.name} is encrypted: name the variable with its password by --password-env.")
    return decrypt(file, password, folder / file.name)


def _import_table(file: _File, table: str, import_batch: ImportBatch) -> Steps[None]:
    for rows in _batches(file.source.rows(table)):
        tx = yield
        file.counts[table] += import_batch(tx, file, rows)
        if table in TABLES_WITH_TAGS:
            file.odd_tags[table] += sum(import_rows.odd_tags(row) for row in rows if required_text(row, "id"))
        for _ in rows:
            count_step(tx)


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the rows in batches that are bounded in number and bytes; a larger row is a batch of its own."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        own = sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        if batch and (len(batch) == _BATCH_ROWS or size + own > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += own
    if batch:
        yield batch


def _import_rows(kind: type[Item], tx: Tx, file: _File, rows: Sequence[Row]) -> int:
    here = space(tx, file.db)
    items = [import_rows.converted(kind, row, file.db, tx.now, embedding_columns(tx)) for row in rows]
    new = insert_new(tx, file.db, items)
    for row in new:
        if isinstance(row, Memory):
            events = _events(tx, file, row.id)
            _append_history(tx, here, import_rows.complete_history(row, events))
            file.counts["memory_history"] += len(events)
        if is_indexed(row):
            update_index(tx, KIND_OF[kind].source(here, row))
    return len(new)


def _import_other_history(file: _File) -> Steps[None]:
    """Imports the events of memories without history here: of those that were deleted in the source."""
    for key in file.source.values("memory_history", "memory_id"):
        tx = yield
        here = space(tx, file.db)
        if key and not history.read(tx, here, key):
            events = _events(tx, file, key)
            _append_history(tx, here, events)
            file.counts["memory_history"] += len(events)


def _events(tx: Tx, file: _File, key: str) -> list[Event]:
    rows = file.source.rows_with("memory_history", "memory_id", key)
    events = [import_rows.event(row, tx.now) for row in rows]
    return sorted(events, key=lambda event: (event.at, event.operation != "created"))


def _append_history(tx: Tx, here: str, events: Iterable[Event]) -> None:
    for key, operation, before, after, reason, at in events:
        history.append(tx, here, key, operation, before=before, after=after, reason=reason, at=at)


def _import_links(tx: Tx, file: _File, rows: Sequence[Row]) -> int:
    """Return the number of new links; an end that exists in no database is remarked upon, and the link kept."""
    new = insert_new(tx, file.db, [import_rows.converted(Link, row, file.db, tx.now, (0, None)) for row in rows])
    ends = {row.id: (LinkEnd(row.source_type, row.source_id), LinkEnd(row.target_type, row.target_id)) for row in new}
    link_ends = [*dict.fromkeys(end for pair in ends.values() for end in pair)]
    absent = set(tx.all("brain.links.missing_ends", LinkEnd, ends=link_ends, databases=databases(tx)))
    file.link_remarks.extend(
        f"link {key} was kept, though there is no {end.kind} {end.id}"
        for key, pair in ends.items()
        for end in pair
        if end in absent
    )
    return len(new)


def _import_config(tx: Tx, _file: _File, rows: Sequence[Row]) -> int:
    columns = [(required_text(row, "key"), required_text(row, "value"), text_of(row, "description")) for row in rows]
    times = [time(row, "updated_at") or tx.now for row in rows]
    settings = [(*texts, at) for texts, at in zip(columns, times, strict=True)]
    return len(tx.all("brain.import_project_brain.config", str, rows=settings))


def _import_queries(tx: Tx, file: _File, rows: Sequence[Row]) -> int:
    return tx.run("brain.querylog.insert", rows=[import_rows.query(row, file.db, tx.now) for row in rows])


_IMPORTS: Mapping[str, ImportBatch] = {
    "memories": partial(_import_rows, Memory),
    "entities": partial(_import_rows, Entity),
    "notes": partial(_import_rows, Note),
    "resources": partial(_import_rows, Resource),
    "config": _import_config,
    "query_log": _import_queries,
}


def _skipped_remarks(file: _File) -> list[str]:
    """Return a line for each table with odd tags, with skipped rows, and for each unknown table."""
    remarks = [
        f"{count} rows of {table} have tags that are no JSON list; what stands between commas was taken for tags"
        for table, count in file.odd_tags.items()
        if count
    ]
    for table in file.source.tables():
        if any(mark in table for mark in _INDEX_TABLE_MARKS):
            continue
        count = file.source.count(table)
        if table in file.counts and count > file.counts[table]:
            remarks.append(f"{count - file.counts[table]} of {count} rows of {table} were there already or have no id")
        elif table not in file.counts and count:
            remarks.append(f"{count} rows of {table} were left out, as nothing here holds them")
    return remarks

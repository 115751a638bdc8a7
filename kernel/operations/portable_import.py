"""The import of an export of everything: into a new store it brings back all, and another export is the same file.

A row that is there is left as it is if it is equal, and refused if it is not: two stores are not merged.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from kernel.calls.dialect import Dialect
from kernel.core.errors import Fault
from kernel.core.text import harmless, json_decoder, one_line
from kernel.core.times import utc_time
from kernel.memories.import_records import Imported, Source, shown
from kernel.operations.index_check import put_source, sources_of
from kernel.operations.portable_export import FORMAT, VERSION, Document, Event, Release, problem_of, tables
from kernel.search import index
from kernel.store.long_work import Steps, begin_steps, count_step
from kernel.store.transaction import Tx

_MAX_LINE = 64 << 20
_HEAD_BYTES = 200
_BATCH_LINES = 32
_ALREADY = "already there"
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
Value = str | int | float | None


class _Line(Struct, forbid_unknown_fields=True):
    """One line; a field is set for each kind of line."""

    quipu: str | None = None
    version: int = 0
    table: str = ""
    row: dict[str, Value] | None = None
    history: Event | None = None
    doc: Document | None = None
    release: Release | None = None
    end: int | None = None
    sha256: str = ""


class _State(NamedTuple):
    """The state of an import of a file `name`: the tables of the store, its dialects, and those without memories
    before; whether a memory had a history before, by the hash of its key; and the counts of the result.
    """

    name: str
    tables: Mapping[str, tuple[Dialect, Sequence[str]]]
    dialects: Sequence[Dialect]
    fresh: frozenset[str]
    had_history: dict[int, bool]
    counts: Counter[str]


_decode = json_decoder(_Line)


def is_export(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            line = _decode(file.readline(_HEAD_BYTES))
    except (OSError, *_UNREADABLE):
        return False
    return line.quipu == FORMAT


def import_steps(dialects: Sequence[Dialect], source: Source) -> Steps[Imported]:
    """Read the whole file, then add it in slices."""
    total = _check(source.path)
    tx = yield
    begin_steps(tx, total)
    state = _state(dialects, tx, source.path.name)
    for batch in _batches(source.path):
        tx = yield
        _add(tx, state, batch)
    return _imported(state)


def preview(dialects: Sequence[Dialect], tx: Tx, source: Source) -> Imported:
    """Return the counts that an import would add; raises Fault if it would be refused."""
    begin_steps(tx, _check(source.path))
    state = _state(dialects, tx, source.path.name)
    for batch in _batches(source.path):
        _add(tx, state, batch)
    return _imported(state)


def trial_steps(dialects: Sequence[Dialect], source: Source) -> Steps[Imported]:
    """Write the rows alone, into a copy of the store, whose constraints may refuse them."""
    tx = yield
    state = _state(dialects, tx, source.path.name)
    for batch in _batches(source.path):
        tx = yield
        for number, line in batch:
            dialect, _ = state.tables.get(line.table, (None, ()))
            if line.row is not None and dialect is not None and line.table not in dialect.files.outside:
                _add_row(tx, state, number, line.table, line.row)
    return _imported(state)


def _imported(state: _State) -> Imported:
    counts = dict(sorted(state.counts.items()))
    return Imported({**counts, _ALREADY: counts.get(_ALREADY, 0)})


def _state(dialects: Sequence[Dialect], tx: Tx, name: str) -> _State:
    names = (dialect.name for dialect in dialects)
    fresh = frozenset(name_ for name_ in names if not tx.one("kernel.portable_import.is_touched", int, dialect=name_))
    return _State(name, tables(dialects, tx), dialects, fresh, {}, Counter())


def _check(path: Path) -> int:
    """Read the file to its end; return the number of its lines. Raises Fault for an incomplete file."""
    digest = hashlib.sha256()
    for number, data, line in _lines(path):
        if number == 1 and (line.quipu != FORMAT or line.version > VERSION):
            raise _refused(path.name, number, f"is no export of version {VERSION}")
        if line.end is not None:
            if (line.end, line.sha256) != (number - 1, digest.hexdigest()):
                raise _refused(path.name, number, "does not agree with the lines before it: the file is damaged")
            return number - 1
        digest.update(data)
    raise Fault("invalid", f"{path.name} ends before its last line: it was cut off. Nothing was imported.")


def _lines(path: Path) -> Iterator[tuple[int, bytes, _Line]]:
    try:
        with path.open("rb") as file:
            number = 0
            while data := file.readline(_MAX_LINE):
                number += 1
                try:
                    yield number, data, _decode(data)
                except _UNREADABLE as error:
                    raise _refused(path.name, number, f"cannot be read: {error}") from None
    except OSError as error:
        raise Fault("invalid", f"{path} cannot be read: {error.strerror}.") from None


def _refused(name: str, number: int, problem: str) -> Fault:
    return Fault("invalid", f"{shown(name)}, line {number}: {one_line(harmless(problem), 300)}. Nothing was imported.")


def _batches(path: Path) -> Iterator[list[tuple[int, _Line]]]:
    batch: list[tuple[int, _Line]] = []
    size = 0
    for number, data, line in _lines(path):
        if line.end is not None:
            break
        batch.append((number, line))
        size += len(data)
        if len(batch) == _BATCH_LINES or size > _BATCH_LINES << 12:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _add(tx: Tx, state: _State, batch: Sequence[tuple[int, _Line]]) -> None:
    documents: list[Document] = []
    for number, line in batch:
        if line.row is not None:
            _add_row(tx, state, number, line.table, line.row)
        elif line.history is not None:
            _check_space(state, number, line.history.space)
            _check_times(state, number, line.history.at)
            _add_event(tx, state, line.history)
        elif line.release is not None and not tx.readonly:
            tx.run("kernel.portable_import.add_release", **msgspec.structs.asdict(line.release))
        elif line.doc is not None:
            _check_space(state, number, line.doc.space)
            _check_times(state, number, line.doc.created_at, line.doc.updated_at)
            documents.append(line.doc)
    if documents and not tx.readonly:
        _index(tx, state, documents)
    for _ in batch:
        count_step(tx)


def _check_space(state: _State, number: int, space: str) -> None:
    if space.partition(":")[0] not in {dialect.name for dialect in state.dialects}:
        name = one_line(harmless(space), 40)
        raise _refused(state.name, number, f"holds a memory of {name}, which this version does not have")


def _check_times(state: _State, number: int, *times: str) -> None:
    if wrong := next((time for time in times if utc_time(time) is None), None):
        raise _refused(state.name, number, f"holds {one_line(harmless(wrong), 40)}, which is no time")


def _add_row(tx: Tx, state: _State, number: int, table: str, row: dict[str, Value]) -> None:
    dialect, columns = state.tables.get(table, (None, ()))
    if dialect is None or set(row) - set(columns):
        name = f"table {table}" if dialect is None else f"column {', '.join(sorted(set(row) - set(columns)))}"
        raise _refused(state.name, number, f"holds the {name}, which this version does not have")
    if not row:
        raise _refused(state.name, number, f"holds an empty row of {table}")
    outside = dialect.files.outside.get(table)
    if outside is not None and outside.restore is not None:
        state.counts[dialect.name if outside.restore(tx, row) else _ALREADY] += 1
        return
    if problem := problem_of(table, row):
        raise _refused(state.name, number, problem)
    there = tx.tables.found(table, row)
    if there == row:
        state.counts[_ALREADY] += 1
        return
    if there is not None and dialect.name not in state.fresh:
        raise _refused(state.name, number, f"holds a row of {table} that is here with another content")
    state.counts[dialect.name] += 1
    if not tx.readonly:
        tx.tables.put(table, row, replace=dialect.name in state.fresh)


def _add_event(tx: Tx, state: _State, event: Event) -> None:
    """Add an event, unless its memory had a history here, as after an import that was killed, with the same event."""
    key = hash((event.space, event.key))
    if key not in state.had_history:
        state.had_history[key] = bool(
            tx.one("kernel.portable_import.has_history", int, space=event.space, key=event.key)
        )
    values = msgspec.structs.asdict(event)
    if not state.had_history[key] or not tx.one("kernel.portable_import.has_event", int, **values):
        state.counts["events of the history"] += 1
        if not tx.readonly:
            tx.run("kernel.history.append", rows=[msgspec.structs.astuple(event)])
            tx.add_target((event.space, event.key, event.operation))


def _index(tx: Tx, state: _State, documents: Sequence[Document]) -> None:
    """Index memories that are not in the index, with the author and the times that it has in the file."""
    missing = {
        (document.space, document.key): document
        for document in documents
        if not tx.one("kernel.portable_import.is_indexed", int, space=document.space, key=document.key)
    }
    for source in sources_of(tx, state.dialects, [*missing]):
        document = missing.pop((source.space, source.key), None)
        if document is not None:
            author = (document.dialect, document.tool, document.actor)
            put_source(tx, source, index.Origin(author, document.created_at, document.updated_at))
            tx.add_target((source.space, source.key, "imported"))

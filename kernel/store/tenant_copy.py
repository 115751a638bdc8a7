"""Copies a tenant from one store to another, of whichever engine, and compares the copy with the original."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from kernel.core.errors import Fault
from kernel.store.long_work import OnProgress
from kernel.store.statements import table_facts
from kernel.store.transaction import Tx

Row = tuple[Any, ...]
# Tables that can be derived, are the same in every store, or have another form in each engine, as undo data do.
LEFT_OUT = table_facts().seeded.union(
    "commit_mark counter doc_trigrams doc_words migration row_change undo undo_part".split()
)
# Full text is made from the documents.
_REBUILT = ("kernel.consistency.rebuild_full_text", "kernel.consistency.rebuild_parts", "kernel.dropped.forget_all")
_encode = msgspec.msgpack.Encoder().encode


class Copied(NamedTuple):
    """The size of a copy: tables with rows, and rows."""

    tables: int
    rows: int


def copy(source: Tx, target: Tx, progress: OnProgress | None) -> Copied:
    """Copies everything but undo data; `progress` gets the number of rows so far, twice: the total is unknown.

    Raises Fault if the target has memories, or if the copy differs from the original; the caller rolls back.
    """
    source.one("kernel.setting.count_migrations", int)  # takes the snapshot
    here, there = source.tables, target.tables
    tables = {name: columns for name, columns in here.copied().items() if name not in LEFT_OUT}
    expected = there.copied()
    if missing := [name for name, columns in tables.items() if set(columns) != set(expected[name])]:
        raise Fault("invalid", f"The two stores have different schemas: {', '.join(missing)}.")
    if any(next(there.rows(name, tables[name]), None) for name in ("doc", "history", "audit")):
        raise Fault("invalid", "The target has memories already: copy into a new tenant or an empty folder.")
    total = filled = 0
    for name, columns in tables.items():
        source_digest = _Digest()
        there.replace_all(name, columns, source_digest.passing(here.rows(name, columns)))
        target_digest = _Digest()
        for _ in target_digest.passing(there.rows(name, columns)):
            pass
        if target_digest.value != source_digest.value:
            raise Fault("storage", f"The copy of {name} differs from what was sent.")
        total += source_digest.rows
        filled += bool(source_digest.rows)
        if progress:
            progress(total, total)
    there.set_last_ids(here.last_ids())
    for name in _REBUILT:
        target.run(name)
    return Copied(filled, total)


class _Digest:
    """The SHA-256 of rows that pass through."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.rows = 0

    def passing(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self._hash.update(_encode(row))
            self.rows += 1
            yield row

    @property
    def value(self) -> str:
        return self._hash.hexdigest()

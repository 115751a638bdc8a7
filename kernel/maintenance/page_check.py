"""Pages with a wrong checksum: which part of the file they belong to, and making those parts anew that can be."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from kernel.errors import Fault
from kernel.lazy_regex import regex
from kernel.maintenance.index_check import Finding, Report, check_dialect
from kernel.search import ann_storage
from kernel.store.context import CallContext, StoreContext
from kernel.store.sqlite.connection import Connection, open_writer
from kernel.store.sqlite.errors import SQLITE_ERRORS, is_damage
from kernel.store.sqlite.page_checksums import damaged_pages, free_pages, has_checksums
from kernel.store.sqlite.vacuum import unverified, vacuum
from kernel.store.transaction import Tx
from kernel.tools import Dialect

_FREE = "free pages"
_UNKNOWN = "an unknown part"
_OF_FREE_PAGES = regex(r"[Ff]reelist|never used")
_SHOWN = 3

Rebuild = Callable[[Connection, Tx], object]


class _Owner(NamedTuple):
    name: str
    page: int


def check_pages(
    db: Connection, context: StoreContext, dialects: Sequence[Dialect], *, repair: bool, report: Report | None
) -> list[Finding]:
    """The damaged pages; `repair` makes anew what they belong to, or nothing.

    Raises Fault("storage") where that was not asked for, and where they hold what stands nowhere else.
    """
    file = Path(db.filename)
    db.checkpoint()
    damaged = damaged_pages(file)
    if not damaged:
        return []
    parts, rebuilds = _parts(file, context, damaged), _rebuilds(db, context)
    lasting = {part: pages for part, pages in parts.items() if part not in rebuilds}
    if lasting:
        if report:
            _report_memories(file, context, dialects, report)
        raise Fault(
            "storage",
            f"The file is damaged: {_named(lasting)}; put a backup in its place, `quipu restore`, or, where another "
            "program wrote to the file, take its pages as they are, `quipu check --trust-pages`",
        )
    if not repair:
        raise Fault("storage", f"The file is damaged: {_named(parts)}; mend it with `quipu check --repair`")
    _rebuild(db, [rebuilds[part] for part in parts])
    return [Finding("pages", len(damaged), f"with a wrong checksum: {_named(parts)}")]


def trust_pages(file: Path, context: StoreContext) -> None:
    """Gives every page a right checksum, for a file that a program wrote which knows of none.

    Raises Fault("storage"), with nothing changed, where the structure of the file is damaged.
    """
    with open_writer(file, context) as db, unverified(db):
        broken = [text for text in db.integrity_errors() if "fts5" not in text]
        if broken:
            raise Fault("storage", f"The file is damaged: {broken[0]}; put a backup in its place: `quipu restore`")
        vacuum(db)
        db.checkpoint(truncate=True)


def damage_of(file: Path, context: StoreContext, *, structure: bool) -> str:
    """What is damaged in a file that others may use meanwhile; empty for nothing.

    The pages are compared with their checksums. SQLite's integrity check is for those without, and where `structure` is
    asked for, since it takes longer.
    """
    damaged = damaged_pages(file)
    if damaged:
        return _named(_parts(file, context, damaged))
    if has_checksums(file) and not structure:
        return ""
    try:
        with closing(Connection(file, context, readonly=True)) as reader:
            return next(iter(reader.integrity_errors(quick=not structure)), "")
    except SQLITE_ERRORS as error:
        if is_damage(error):
            return str(error)
        raise


def _parts(file: Path, context: StoreContext, damaged: Sequence[int]) -> dict[str, list[int]]:
    """The damaged pages by the table or index that they belong to."""
    owners: dict[int, set[str]] = {number: set() for number in damaged}
    # The owners of what stands behind a damaged page cannot be read.
    with suppress(*SQLITE_ERRORS), closing(Connection(file, context, readonly=True)) as reader:
        for name, number in Tx(reader, CallContext(), readonly=True).each("kernel.consistency.page_owners", _Owner):
            if number in owners:
                owners[number].add(name)
    free = free_pages(file)
    parts: dict[str, list[int]] = {}
    for number, names in owners.items():
        for name in names or {_FREE if number in free else _UNKNOWN}:
            parts.setdefault(name, []).append(number)
    return parts


def _rebuilds(db: Connection, context: StoreContext) -> Mapping[str, Rebuild]:
    """How the parts are made anew that hold nothing of their own."""
    with unverified(db), db.writing() as tx:
        indexes = tx.all("kernel.consistency.indexes", str)
    full_text = ("doc_fts_data", "doc_fts_idx", "doc_fts_docsize")
    parts = ("doc_part_data", "doc_part_idx")
    return {
        _FREE: _nothing,
        **dict.fromkeys(indexes, _reindex),
        **dict.fromkeys(full_text, _rebuild_full_text),
        **dict.fromkeys(parts, _rebuild_parts),
        "doc_sketch": _clear_sketches,
        **({"doc_vector": _clear_vectors} if context.embedder is not None else {}),
    }


def _rebuild(db: Connection, rebuilds: Sequence[Rebuild]) -> None:
    with unverified(db), db.writing() as tx:
        for rebuild in dict.fromkeys(rebuilds):
            rebuild(db, tx)
        left = [text for text in db.integrity_errors() if "fts5" not in text and not _OF_FREE_PAGES.search(text)]
        if left:  # what was taken for a page of an index led into other parts
            raise Fault("storage", f"The file is damaged: {left[0]}; put a backup in its place: `quipu restore`")
    vacuum(db)  # what was damaged is free now, and is left out
    db.checkpoint(truncate=True)


def _report_memories(file: Path, context: StoreContext, dialects: Sequence[Dialect], report: Report) -> None:
    """Reports the memories that are not the same in rows and index."""
    reader = Connection(file, context, readonly=True)
    try:
        for dialect in dialects:
            with suppress(*SQLITE_ERRORS, UnicodeDecodeError):
                check_dialect(Tx(reader, CallContext(), readonly=True), dialect, repair=False, report=report)
            reader.rollback()
    finally:
        reader.close()


def _named(parts: Mapping[str, Sequence[int]]) -> str:
    pages = [f"page {number} ({part})" for part, numbers in parts.items() for number in numbers]
    return ", ".join(pages[:_SHOWN]) + (f" and {len(pages) - _SHOWN} more" if len(pages) > _SHOWN else "")


def _nothing(_db: Connection, _tx: Tx) -> None:
    pass


def _reindex(db: Connection, _tx: Tx) -> None:
    db.script("REINDEX")


def _rebuild_full_text(_db: Connection, tx: Tx) -> None:
    tx.run("kernel.consistency.rebuild_full_text")


def _rebuild_parts(_db: Connection, tx: Tx) -> None:
    tx.run("kernel.consistency.rebuild_parts")


def _clear_sketches(_db: Connection, tx: Tx) -> None:
    ann_storage.clear(tx)


def _clear_vectors(_db: Connection, tx: Tx) -> None:
    tx.run("kernel.consistency.delete_all_vectors")
    ann_storage.clear(tx)

"""Frees space: sketches of deleted vectors, segments of the full-text index, old history, free pages."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from kernel.search import ann_storage, index
from kernel.search.semantic import load_vectors
from kernel.store import introspection
from kernel.store.context import StoreContext
from kernel.store.sqlite.connection import open_writer
from kernel.store.store import Store
from kernel.store.transaction import Tx

R = TypeVar("R")
_DOCS_PER_DELETION = 4  # blocks are renewed once deletions exceed a quarter of the documents
_BATCH_ROWS = 5000  # deleted in one transaction, so that other writes wait for milliseconds


class Write(Protocol):
    """Runs `work(tx)` in a write transaction of its own."""

    def __call__(self, work: Callable[[Tx], R], /) -> R: ...


class Freed(NamedTuple):
    """Bytes of the file before and after."""

    before: int
    after: int


class _History(NamedTuple):
    id: int
    space: str
    key: str


def compact(file: Path, context: StoreContext, report: Callable[[str], None], *, forget: str | None = None) -> Freed:
    """Makes the file as small as a new one with the same memories; `report` gets a line for every part that is done.

    Everything but the last part, SQLite's VACUUM, runs in small transactions, so that other processes write meanwhile.
    It can be interrupted at any point. With `forget` the history of memories deleted before that time (ISO 8601 UTC)
    is deleted too.
    """
    with open_writer(file, context) as db:

        def write(work: Callable[[Tx], R], /) -> R:
            with db.writing() as tx:
                return work(tx)

        before = file.stat().st_size
        report(f"{_renew_blocks(write, lambda: False)} blocks of sketches made anew")
        if forget is not None:
            report(f"{_delete_histories(write, forget)} deleted memories forgotten")
        write(lambda tx: tx.run("kernel.compact.optimize_full_text"))
        write(lambda tx: tx.run("kernel.compact.optimize_parts"))
        report("full text merged")
        db.checkpoint(truncate=True)
        write(introspection.vacuum_after_commit)
        db.checkpoint(truncate=True)
        return Freed(before, file.stat().st_size)


def tidy(store: Store, stop: Callable[[], bool]) -> None:
    """Adds sketches to blocks, and renews all blocks once many of their vectors are deleted, while calls are served."""
    while not stop() and store.write_sync(
        lambda tx: ann_storage.seal_blocks(tx, index.model_id(tx)) if index.has_model(tx) else 0
    ):
        pass
    if not stop() and store.read_sync(_needs_renewal):
        store.read_sync(load_vectors)  # with the deletions applied, since their log is deleted below
        _renew_blocks(store.write_sync, stop)


def _needs_renewal(tx: Tx) -> bool:
    docs = tx.one("kernel.consistency.count_docs", int) or 0
    return ann_storage.count_deletions(tx) > max(ann_storage.BLOCK_ROWS, docs // _DOCS_PER_DELETION)


def _renew_blocks(write: Write, stop: Callable[[], bool]) -> int:
    """Rewrites every block and deletes the log of deletions, which no block needs any more; the number of blocks."""
    upto: int = write(ann_storage.last_deletion_id)
    made = after = 0
    while not stop() and (after := write(lambda tx, after=after: _renew_block(tx, after))):
        made += 1
    while not stop() and write(lambda tx: ann_storage.trim_deletions(tx, upto, _BATCH_ROWS)):
        pass
    return made


def _renew_block(tx: Tx, after: int) -> int:
    number = index.model_id(tx)
    return ann_storage.rewrite_block(tx, number, after) if number else 0


def _delete_histories(write: Write, before: str) -> int:
    done = after = 0
    while finished := write(lambda tx, after=after: _delete_some_histories(tx, before, after)):
        done += len(finished)
        after = finished[-1].id
    return done


def _delete_some_histories(tx: Tx, before: str, after: int) -> list[_History]:
    finished = tx.all("kernel.compact.finished_histories", _History, before=before, after=after, limit=_BATCH_ROWS)
    tx.run("kernel.compact.delete_histories", keys=[row[1:] for row in finished])
    return finished

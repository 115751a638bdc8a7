"""Frees space: sketches of deleted vectors, segments of the full-text index, old history, expired undo, free pages."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kernel.core.text import counted
from kernel.core.times import later
from kernel.engines.sqlite.connection import Connection, open_writer
from kernel.engines.yielding import Turns
from kernel.operations.index_check import Key
from kernel.search import ann, dropped, index
from kernel.search.vectors import load_vectors
from kernel.store import audit, introspection
from kernel.store.context import CallContext, StoreContext
from kernel.store.long_work import Steps
from kernel.store.store import Store
from kernel.store.transaction import Tx

Write = Callable[[Callable[[Tx], int]], int]  # runs work in a write transaction of its own
_DOCS_PER_DELETION = 4  # blocks are renewed once deletions exceed a quarter of the documents
_BATCH_ROWS = 512  # of the log of deletions, deleted in one transaction
_STEP_EVENTS = 512  # of the history, looked at between two looks at the clock
_MERGED_PAGES = 16  # of the full-text index, in one step
_DOCS_PER_SEGMENT = 1000  # a lexical search of 1,000 texts in 17 segments takes 2.2 times that in a single segment
_MOST_MERGED = 30_000  # documents; a merge takes 12 ms of 5,000
_LEAST_CHANGES = 2  # of a merge that has not come to its end (https://sqlite.org/fts5.html#the_merge_command)
_AFTER_ALL = "9"  # of times in ISO 8601


class Freed(NamedTuple):
    """Bytes of the file before and after, bytes of it that are free for later writes, and calls that can be undone."""

    before: int
    after: int
    free: int
    undoable: int


class _Segments(NamedTuple):
    segments: int
    pages: int


class Choice(NamedTuple):
    """The options of a compaction: it gives free pages back if others write (`full`), drops the history of memories
    deleted before a time (`forget`), ends the undo of all calls (`forget_undo`), or of those of more hours ago (0: of
    none).
    """

    full: bool = False
    forget: str | None = None
    forget_undo: bool = False
    undo_hours: int = 0


def compact(
    file: Path, context: StoreContext, report: Callable[[str], None], choice: Choice = Choice(), *, alone: bool = True
) -> Freed:
    """Free the room of deleted memories; `report` gets a line for every part that is done.

    All of it runs in slices, so that others write meanwhile, and can be cut off at any point, but for the last part,
    SQLite's VACUUM, during which writes wait. It makes the file as small as a new file with the same memories, and is
    left out beside others, unless the choice is `full`: free pages are filled by later writes.
    """
    with open_writer(file, context) as db:
        turns = Turns(db, alone=alone)
        before = file.stat().st_size
        turns.run(dropped.removal_steps())
        if alone or turns.write(_needs_renewal):
            report(f"{counted(_renew_blocks(turns.write, lambda: False), 'block')} of sketches made anew")
        if choice.forget is not None:
            report(f"{turns.run(_forgetting_steps(choice.forget))} deleted memories forgotten")
        if choice.forget_undo:
            calls = turns.write(audit.kept_undo).calls
            turns.run(_expiring_steps(0))
            report(f"{counted(calls, 'call')} can no longer be undone")
        elif choice.undo_hours:
            turns.run(_expiring_steps(choice.undo_hours))
        turns.run(_merging_steps(db))
        report("full text merged")
        db.checkpoint(truncate=alone)
        if alone or choice.full:
            turns.write(introspection.vacuum_after_commit)
            db.checkpoint(truncate=True)
        undoable = turns.write(audit.kept_undo).calls
        free = db.pragma("freelist_count") * db.pragma("page_size")
        return Freed(before, file.stat().st_size, free, undoable)


def _merging_steps(db: Connection) -> Steps[None]:
    tx = yield
    for statement in ("kernel.compact.merge_full_text", "kernel.compact.merge_parts"):
        pages, changes = -_MERGED_PAGES, _LEAST_CHANGES
        while changes >= _LEAST_CHANGES:
            before = db.total_changes()
            tx.run(statement, pages=pages)
            changes = db.total_changes() - before
            pages = _MERGED_PAGES
            tx = yield


def _expiring_steps(hours: int) -> Steps[None]:
    """End the undo of calls of more hours ago; 0: of all."""
    tx = yield
    before = later(tx.now, -timedelta(hours=hours)) if hours else _AFTER_ALL
    while audit.expire_undo(tx, before):
        tx = yield


def _forgetting_steps(before: str) -> Steps[int]:
    """Drop the history of memories deleted before a time; return their number."""
    tx = yield
    last = tx.one("kernel.compact.last_event", int) or 0
    count = 0
    for after in range(0, last, _STEP_EVENTS):
        memories = tx.all(
            "kernel.compact.finished_histories", Key, before=before, after=after, upto=after + _STEP_EVENTS
        )
        if memories:
            tx.run("kernel.compact.delete_histories", keys=memories)
        count += len(memories)
        tx = yield
    return count


def tidy(store: Store, stop: Callable[[], bool]) -> None:
    """Seal blocks, renew them after many deletions, take deleted words out of full text, and merge the segments of a
    small store's, while calls are served.
    """
    if (removal := store.read_sync(dropped.removal)) is not None:
        store.write_later(removal, CallContext(), exclusive=True)
    while not stop() and store.write_sync(
        lambda tx: ann.seal_blocks(tx, index.model_id(tx)) if index.has_model(tx) else 0
    ):
        pass
    if not stop() and store.read_sync(_needs_renewal):
        store.read_sync(load_vectors)  # with the deletions applied, since their log is deleted below
        _renew_blocks(store.write_sync, stop)
    _merge_full_text(store, stop)


def _merge_full_text(store: Store, stop: Callable[[], bool]) -> None:
    """Merge the full-text index, in which each commit makes a segment, into one, if it has many for its size."""
    pages, steps = -_MERGED_PAGES, store.read_sync(_steps_of_merge)
    while steps and not stop() and store.write_sync(partial(_merge_pages, pages=pages)) > 1:
        pages, steps = _MERGED_PAGES, steps - 1


def _steps_of_merge(tx: Tx) -> int:
    docs = index.last_doc_id(tx)
    left = tx.one("kernel.compact.segments", _Segments) if docs <= _MOST_MERGED else None
    return 2 * left.pages // _MERGED_PAGES + 1 if left and left.segments > max(1, docs // _DOCS_PER_SEGMENT) else 0


def _merge_pages(tx: Tx, pages: int) -> int:
    tx.run("kernel.compact.merge_full_text", pages=pages)
    left = tx.one("kernel.compact.segments", _Segments)
    return left.segments if left else 0


def _needs_renewal(tx: Tx) -> bool:
    docs = tx.one("kernel.consistency.count_docs", int) or 0
    return ann.count_deletions(tx) > max(ann.BLOCK_ROWS, docs // _DOCS_PER_DELETION)


def _renew_blocks(write: Write, stop: Callable[[], bool]) -> int:
    """Rewrite every block and delete the log of deletions, which none needs any more; return the number of blocks."""
    upto = write(ann.last_deletion_id)
    blocks = after = 0
    while not stop() and (after := write(partial(_renew_block, after=after))):
        blocks += 1
    while not stop() and write(lambda tx: ann.trim_deletions(tx, upto, _BATCH_ROWS)):
        pass
    return blocks


def _renew_block(tx: Tx, after: int) -> int:
    number = index.model_id(tx)
    return ann.rewrite_block(tx, number, after) if number else 0

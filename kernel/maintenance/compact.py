"""Gives room back: sketches of what is gone, parts of the full text, history that nobody wants, free pages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kernel.search import ann_storage, index
from kernel.search.semantic import load_sketches
from kernel.store import introspection
from kernel.store.context import StoreContext
from kernel.store.sqlite.connection import Connection
from kernel.store.store import Store
from kernel.store.transaction import Tx

_SHARE = 4
_SOME = 5000

Write = Callable[[Callable[[Tx], Any]], Any]
Report = Callable[[str], None]


class Freed(NamedTuple):
    """Bytes of the file before and after."""

    before: int
    after: int


class _Ended(NamedTuple):
    id: int
    space: str
    key: str


def compact(file: Path, world: StoreContext, told: Report, *, forget: str | None = None) -> Freed:
    """Makes the file as small as one that was filled with what is left; `told` is told of every part that is done.

    Everything before the last part is done in small transactions, so that others write meanwhile; that one is the
    engine's own, and they wait for it. Whatever stops it leaves a sound file. With `forget` the history of memories
    that were deleted before that time (ISO 8601 UTC) goes too.
    """
    db = Connection(file, world, readonly=False)
    db.load_vectors()

    def write(work: Callable[[Tx], Any]) -> Any:
        with db.writing() as tx:
            return work(tx)

    try:
        before = file.stat().st_size
        told(f"{_renew(write, lambda: False)} blocks of sketches made anew")
        if forget is not None:
            told(f"{_forget(write, forget)} deleted memories forgotten")
        write(lambda tx: tx.run("kernel.compact.optimize_full_text"))
        told("full text merged")
        db.checkpoint(truncate=True)
        write(introspection.vacuum_after_commit)
        db.checkpoint(truncate=True)
        return Freed(before, file.stat().st_size)
    finally:
        db.close()


def tidy(store: Store, stop: Callable[[], bool]) -> None:
    """Makes blocks of the sketches that are in none, and all of them anew where much is gone, beside the calls."""
    while not stop() and store.write_sync(
        lambda tx: ann_storage.seal_blocks(tx, index.model_id(tx)) if index.has_model(tx) else 0
    ):
        pass
    if not stop() and store.read_sync(_worn):
        store.read_sync(
            load_sketches
        )  # what is forgotten below is known in this process, so that it need not read all again
        _renew(store.write_sync, stop)


def _worn(tx: Tx) -> bool:
    return ann_storage.count_deletions(tx) > max(ann_storage.BLOCK_ROWS, (tx.one("kernel.consistency.count_docs", int) or 0) // _SHARE)


def _renew(write: Write, stop: Callable[[], bool]) -> int:
    """Makes every block anew, then forgets the deletions that none of them holds; how many there are."""
    upto: int = write(ann_storage.last_deletion_id)
    made = after = 0
    while not stop() and (after := write(lambda tx, after=after: _block(tx, after))):
        made += 1
    while not stop() and write(lambda tx: ann_storage.trim_deletions(tx, upto, _SOME)):
        pass
    return made


def _block(tx: Tx, after: int) -> int:
    number = index.model_id(tx)
    return ann_storage.rewrite_block(tx, number, after) if number else 0


def _forget(write: Write, before: str) -> int:
    done = after = 0
    while ended := write(lambda tx, after=after: _forget_some(tx, before, after)):
        done += len(ended)
        after = ended[-1].id
    return done


def _forget_some(tx: Tx, before: str, after: int) -> list[_Ended]:
    ended = tx.all("kernel.compact.finished_histories", _Ended, before=before, after=after, limit=_SOME)
    tx.run("kernel.compact.delete_histories", keys=[row[1:] for row in ended])
    return ended

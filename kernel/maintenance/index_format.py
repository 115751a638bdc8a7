"""Renews what an earlier release indexed: words that came to the index since, and vectors of spelled texts."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kernel.errors import Fault
from kernel.search.vectors import delete_vectors, has_model, insert_vectors
from kernel.search.words import completed
from kernel.store.slices import Steps
from kernel.store.store import Store
from kernel.store.transaction import SLICE_BYTES, Tx

_BATCH_ROWS = 64  # renewed in one transaction, so that other writes wait for milliseconds
_STEP_ROWS = 8  # of a command that works in slices; one is cut between steps
_RETRY_SECONDS = 0.05  # before the next attempt where the queue of the writer was full


class _Outdated(NamedTuple):
    doc: int
    text: str
    words: str


def renew_index(store: Store, stop: Callable[[], bool]) -> None:
    """Renews what is outdated while calls are served; the next start goes on where this one stops."""
    while store.read_sync(_outdated_to) and not stop():
        try:
            store.write_sync(lambda tx: _renew_batch(tx, _BATCH_ROWS))
        except Fault as fault:
            if fault.code != "busy":
                raise
            time.sleep(_RETRY_SECONDS)


def renewal_steps() -> Steps[None]:
    """The same in steps, for a command."""
    tx = yield
    while _outdated_to(tx):
        _renew_batch(tx, _STEP_ROWS)
        tx = yield


def _outdated_to(tx: Tx) -> int:
    return tx.one("kernel.index_format.outdated_to", int) or 0


def _renew_batch(tx: Tx, limit: int) -> None:
    last = _outdated_to(tx)
    rows = tx.all("kernel.index_format.outdated", _Outdated, last=last, limit=limit, bytes=SLICE_BYTES)
    _renew(tx, rows)
    last = rows[-1].doc - 1 if rows else 0
    if last > 0:
        tx.run("kernel.index_format.set_outdated_to", last=str(last))
    else:
        tx.run("kernel.index_format.finish")


def _renew(tx: Tx, rows: Sequence[_Outdated]) -> None:
    """Brings documents of an earlier release to the present form of the index."""
    changed = [(doc, whole) for doc, text, words in rows if (whole := completed(text, words)) != words]
    ids = [doc for doc, _ in changed]
    if ids:
        tx.context.search_cache.uncommitted = tx
        tx.run("kernel.index.fts_delete", ids=ids)
        tx.run("kernel.index.set_words", rows=changed)
        tx.run("kernel.index.fts_insert", ids=ids)
    # A text that a model spells letter by letter had a vector.
    spelled = [(doc, text) for doc, text, _ in rows if not text.isascii()]
    if spelled and has_model(tx):
        delete_vectors(tx, [doc for doc, _ in spelled])
        insert_vectors(tx, spelled)

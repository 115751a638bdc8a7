"""Renews the index of an earlier release: words added since, vectors of spelled texts, and texts held in part."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from kernel.calls.dialect import Dialect
from kernel.core.errors import Fault
from kernel.operations import index_check
from kernel.search.extra_terms import completed
from kernel.search.vectors import delete_vectors, has_model, insert_vectors
from kernel.store.long_work import Steps
from kernel.store.store import Store
from kernel.store.transaction import SLICE_BYTES, Tx

_BATCH_ROWS = 64  # renewed in one transaction, so that other writes wait for milliseconds
_STEP_ROWS = 8  # of a command that works in slices, which are cut between steps
_RETRY_SECONDS = 0.05  # before the next attempt if the queue of the writer was full


class _Outdated(NamedTuple):
    doc: int
    text: str
    words: str


class _Document(NamedTuple):
    doc: int
    space: str
    key: str


class _Texts(NamedTuple):
    """Memories of which the index holds less than their rows say, and the last document before them."""

    keys: Sequence[tuple[str, str]]
    rest: int


def renew_index(store: Store, dialects: Sequence[Dialect], stop: Callable[[], bool]) -> None:
    """Renew outdated rows while calls are served; the next start goes on from there."""
    while not stop() and (work := _next_work(store, dialects)) is not None:
        try:
            store.write_sync(work)
        except Fault as fault:
            if fault.code != "busy":
                raise
            time.sleep(_RETRY_SECONDS)


def _next_work(store: Store, dialects: Sequence[Dialect]) -> Callable[[Tx], None] | None:
    if store.read_sync(_outdated_to):
        return partial(_renew_batch, limit=_BATCH_ROWS)
    texts = store.read_sync(partial(_outdated_texts, dialects=dialects, limit=_BATCH_ROWS))
    return None if texts is None else partial(_renew_texts, dialects=dialects, texts=texts)


def renewal_steps(dialects: Sequence[Dialect]) -> Steps[None]:
    """Return the same in steps, for a command."""
    tx = yield
    while _outdated_to(tx):
        _renew_batch(tx, _STEP_ROWS)
        tx = yield
    while (texts := _outdated_texts(tx, dialects, _STEP_ROWS)) is not None:
        _renew_texts(tx, dialects, texts)
        tx = yield


def _outdated_texts(tx: Tx, dialects: Sequence[Dialect], limit: int) -> _Texts | None:
    """Compare the next documents with their rows, on a reader, so that no write waits; None after the last document."""
    last = tx.one("kernel.index_format.texts_outdated_to", int)
    if last is None:
        return None
    rows = tx.all("kernel.index_format.texts_outdated", _Document, last=last, limit=limit, bytes=SLICE_BYTES)
    keys = [(row.space, row.key) for row in rows]
    return _Texts(index_check.differing_among(tx, dialects, keys), rows[-1].doc - 1 if rows else 0)


def _renew_texts(tx: Tx, dialects: Sequence[Dialect], texts: _Texts) -> None:
    index_check.renew_documents(tx, dialects, texts.keys)
    if texts.rest > 0:
        tx.run("kernel.index_format.set_texts_outdated_to", last=str(texts.rest))
    else:
        tx.run("kernel.index_format.finish_texts")


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
    new_words = [(doc, whole) for doc, text, words in rows if (whole := completed(text, words)) != words]
    ids = [doc for doc, _ in new_words]
    if ids:
        tx.context.search_cache.uncommitted = tx
        tx.run("kernel.index.fts_delete", ids=ids)
        tx.run("kernel.index.set_words", rows=new_words)
        tx.run("kernel.index.fts_insert", ids=ids)
    # A text that a model spells letter by letter had a vector.
    spelled_rows = [(doc, text) for doc, text, _ in rows if not text.isascii()]
    if spelled_rows and has_model(tx):
        delete_vectors(tx, [doc for doc, _ in spelled_rows])
        insert_vectors(tx, spelled_rows)

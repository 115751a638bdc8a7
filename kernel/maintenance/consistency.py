"""Consistency of rows, full text and vectors: check, repair, and re-embedding."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from kernel.embed.model import Embedder, Embedding
from kernel.errors import Fault
from kernel.ids import utc_now
from kernel.maintenance.file_check import check_file
from kernel.maintenance.index_check import Finding, Report, check_dialect
from kernel.maintenance.index_format import renew_index, renew_index_of
from kernel.search import ann_storage, day_counts, index, quarantine
from kernel.store import audit
from kernel.store.context import StoreContext
from kernel.store.engine import CommandConnection
from kernel.store.opening import open_writer
from kernel.store.progress import OnProgress
from kernel.store.sqlite.connection import Connection
from kernel.store.sqlite.errors import DAMAGED
from kernel.store.store import Store
from kernel.store.transaction import SLICE_BYTES, Tx
from kernel.tools import Dialect

_BATCH_ROWS = 256  # embedded in one transaction, so that other writes wait for milliseconds
_RETRY_SECONDS = 0.05  # before the next attempt where the queue of the writer was full
_SKETCHES = "sketches"


class _Pending(NamedTuple):
    doc: int
    text: str


def check(
    file: Path,
    context: StoreContext,
    dialects: Sequence[Dialect],
    *,
    repair: bool = False,
    report: Report | None = None,
) -> list[Finding]:
    """The inconsistencies of the file, before any repair; with `repair` the index is rebuilt from sound rows.

    Rows are never changed. `report` gets a line for each memory that differs. Raises Fault("storage") where the file
    itself is damaged, which no rebuild can repair.
    """
    try:
        return _check(file, context, dialects, repair=repair, report=report)
    except (*DAMAGED, UnicodeDecodeError) as error:  # of a kind that SQLite's integrity check does not see
        raise Fault("storage", f"The file is damaged: {error}; put a backup in its place: `quipu restore`") from None


def _check(
    file: Path, context: StoreContext, dialects: Sequence[Dialect], *, repair: bool, report: Report | None
) -> list[Finding]:
    with open_writer(file, context) as db:
        found: list[Finding] = []
        if isinstance(db, Connection):
            found += check_file(db, context, dialects, repair=repair, report=report)
        found += _full_text(db)
        renew_index_of(db)
        found.append(Finding("references", db.orphans(), "rows that refer to a row that is not there", True))
        with db.writing() as tx:
            found += _vectors(tx) + _audit(tx)
            found.append(Finding("counts", day_counts.count_mismatches(tx), "wrong numbers of memories of a day"))
            found += [one for dialect in dialects for one in check_dialect(tx, dialect, repair=repair, report=report)]
            found.append(
                Finding("quarantine", quarantine.check_flags(tx, repair=repair), "memories not marked as they look")
            )
            if repair:
                _repair(tx, found)
        if repair:
            _embed_missing(db)
        return [finding for finding in found if finding.rows]


def _repair(tx: Tx, found: Sequence[Finding]) -> None:
    _rebuild_full_text(tx)
    tx.flush_deferred()
    day_counts.rebuild(tx)
    index.delete_vectors(tx, tx.all("kernel.consistency.orphans", int))
    if any(finding.part == _SKETCHES and finding.rows for finding in found):
        ann_storage.clear(tx)


def reindex(file: Path, context: StoreContext, progress: OnProgress | None = None) -> int:
    """Rebuilds full text and every vector from the rows, in small transactions; returns the number of vectors."""
    with open_writer(file, context) as db:
        renew_index_of(db)
        with db.writing() as tx:
            _rebuild_full_text(tx)
            tx.run("kernel.consistency.log_all_vectors_deleted")
            tx.run("kernel.consistency.delete_all_vectors")
            ann_storage.clear(tx)
        return _embed_missing(db, progress)


def complete_index(store: Store, stop: Callable[[], bool]) -> None:
    """Brings what other releases and models have left to the present form, while calls are served."""
    renew_index(store, stop)
    embed_missing(store, stop)


def embed_missing(store: Store, stop: Callable[[], bool]) -> int:
    """Embeds documents without a vector of the configured model while calls are served; returns how many.

    Until then search finds them by words only. Vectors of another model are never compared with a query, and are
    replaced batch by batch.
    """
    embedder = store.context.embedder
    if embedder is None:
        return 0
    done = 0
    while not stop():
        try:
            embedded = _embed_batch(store, embedder)
        except Fault as fault:
            if fault.code != "busy":
                raise
            time.sleep(_RETRY_SECONDS)
            continue
        if not embedded:
            break
        done += embedded
    return done


def _embed_batch(store: Store, embedder: Embedder) -> int:
    pending: list[_Pending] = store.read_sync(_pending)
    texts = [row.text for row in pending]
    vectors = dict(zip(texts, embedder.embed(texts), strict=True))
    return store.write_sync(lambda tx: _replace_vectors(tx, pending, vectors)) if pending else 0


def _pending(tx: Tx) -> list[_Pending]:
    return tx.all(
        "kernel.consistency.pending", _Pending, model=index.model_id(tx), limit=_BATCH_ROWS, bytes=SLICE_BYTES
    )


def _replace_vectors(tx: Tx, rows: Sequence[_Pending], vectors: dict[str, Embedding]) -> int:
    tx.preload(vectors)
    index.delete_vectors(tx, [row.doc for row in rows])
    index.insert_vectors(tx, [(row.doc, row.text) for row in rows])
    return len(rows)


def _embed_missing(db: CommandConnection, progress: OnProgress | None = None) -> int:
    done = 0
    while True:
        with db.writing() as tx:
            total = tx.one("kernel.consistency.count_docs", int) or 0
            rows = _pending(tx) if index.has_model(tx) else []
            _replace_vectors(tx, rows, {})
        if not rows:
            return done
        done += len(rows)
        if progress:
            progress(done, total)


def _full_text(db: CommandConnection) -> list[Finding]:
    with db.writing() as tx:
        sound = tx.passes_check("kernel.consistency.check_full_text")
        parts = tx.passes_check("kernel.consistency.check_parts")
    broken = [Finding("full text", 0 if sound else 1, "differs from the documents")]
    return [*broken, Finding("parts of words", 0 if parts else 1, "differ from the documents")]


def _rebuild_full_text(tx: Tx) -> None:
    tx.run("kernel.consistency.rebuild_full_text")
    tx.run("kernel.consistency.rebuild_parts")


def _vectors(tx: Tx) -> list[Finding]:
    found = [Finding("vectors", len(tx.all("kernel.consistency.orphans", int)), "without a document")]
    found.append(Finding(_SKETCHES, ann_storage.count_mismatches(tx, index.model_id(tx)), "not as with their vectors"))
    if index.has_model(tx):
        lacking = tx.one("kernel.consistency.count_pending", int, model=index.model_id(tx)) or 0
        found.append(Finding("documents", lacking, "without a vector of the configured model"))
    return found


def _audit(tx: Tx) -> list[Finding]:
    return [Finding("audit", int(audit.first_broken(tx) is not None), "rows that do not follow from the one before")]


def backup_time() -> str:
    """The time now as it appears in the name of a backup."""
    return utc_now().replace(":", "").replace(".", "")

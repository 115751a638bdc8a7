"""Consistency of rows, full text and vectors: check, repair, re-embedding, and the renewal of an index of an earlier
release: words added since, vectors of spelled texts, and texts held in part.
"""

import time
from collections.abc import Callable, Generator, Sequence, Set
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kernel.calls.dialect import Dialect
from kernel.core.errors import Fault
from kernel.core.limits import BOUNDS
from kernel.embed.model import Embedder, Embedding
from kernel.engines.opening import open_writer
from kernel.engines.sqlite.connection import Connection
from kernel.engines.sqlite.errors import DAMAGED, WRONG_SCHEMA
from kernel.engines.yielding import Turns
from kernel.operations import index_check
from kernel.operations.file_check import check_file
from kernel.operations.index_check import Finding, Key, Report
from kernel.operations.portable_export import problems
from kernel.search import ann, dropped, index, quarantine
from kernel.search.extra_terms import completed
from kernel.store import audit
from kernel.store.context import CallContext, StoreContext
from kernel.store.engine import CommandConnection
from kernel.store.long_work import OnProgress, Steps, run_steps
from kernel.store.store import Store
from kernel.store.transaction import SLICE_BYTES, Tx

_BATCH_ROWS = 64  # embedded or renewed in one transaction, so that other writes wait for milliseconds
_STEP_ROWS = 8  # of a command that works in slices, which are cut between steps
_STEP_DELETIONS = 64
_AHEAD_ROWS = 64  # embedded before a slice begins
_RETRY_SECONDS = 0.05  # before the next attempt if the queue of the writer was full
_MAX_MILLISECONDS = BOUNDS["store_milliseconds"].high
_SKETCHES, _COUNTS, _QUARANTINE = "sketches", "counts", "quarantine"
_VECTORS, _DOCUMENTS = "vectors", "documents"
_TO_EMBED = "not embedded with the configured model yet: a running server or `quipu reindex` does that"
_UNFINISHED = "unfinished, call {0}: `quipu {1}` goes on when it is run again, or `quipu undo {0}` takes it back"
# The settings that keep the last documents with words, or of kinds of text, as an earlier release indexed them.
_WORDS_LEFT, _TEXTS_LEFT = "index_outdated_to", "index_texts_outdated_to"


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
    alone: bool = True,
) -> list[Finding]:
    """Return the inconsistencies of the file, before any repair; with `repair` the index is rebuilt from sound rows.

    Rows are never changed. `report` gets a line for each memory that differs. Raises Fault("storage") if the file
    itself is damaged, which no rebuild can repair.
    """
    try:
        return _check(file, context, dialects, repair=repair, report=report, alone=alone)
    # Such an error is of a kind that SQLite's integrity check does not see.
    except (*DAMAGED, *WRONG_SCHEMA, UnicodeDecodeError) as error:
        raise Fault("storage", f"The file is damaged: {error}; put a backup in its place: `quipu restore`") from None


def _check(
    file: Path, context: StoreContext, dialects: Sequence[Dialect], *, repair: bool, report: Report | None, alone: bool
) -> list[Finding]:
    limits = context.call_limits._replace(milliseconds=_MAX_MILLISECONDS)  # all of a store takes longer than a call
    with open_writer(file, context._replace(call_limits=limits)) as db:
        turns = Turns(db, alone=alone)
        findings: list[Finding] = []
        if isinstance(db, Connection):
            findings += check_file(db, context, dialects, repair=repair, report=report)
        to_mend = {_QUARANTINE, _COUNTS, _SKETCHES} if any(finding.rows for finding in findings) else set[str]()
        turns.run(dropped.removal_steps())
        words, parts = db.check_full_text()
        findings.append(Finding("full text", int(not words), "differs from the documents"))
        findings.append(Finding("parts of words", int(not parts), "differ from the documents"))
        turns.run(renewal_steps(dialects))
        findings.append(Finding("references", db.orphans(), "rows that refer to a row that is not there", True))
        differing: list[tuple[Dialect, list[Key]]] = []
        findings += db.read(CallContext(), partial(_look, dialects=dialects, report=report, differing=differing))
        if repair:
            if to_mend or not (words and parts):
                turns.run(db.rebuild_full_text())
            for dialect, keys in differing:
                turns.run(index_check.mending_steps(dialect, keys))
            wrong = to_mend | {finding.part for finding in findings if finding.rows}
            # Read without the lock: to look through all vectors takes long.
            turns.run(_repair_steps(wrong, db.read(CallContext(), _orphans) if _VECTORS in wrong else []))
            if wrong & {_VECTORS, _DOCUMENTS}:
                turns.run(_missing_steps())
        return [finding for finding in findings if finding.rows]


def _look(
    tx: Tx, dialects: Sequence[Dialect], report: Report | None, differing: list[tuple[Dialect, list[Key]]]
) -> list[Finding]:
    """Return the differences between rows and data derived from them; `differing` gets the memories to index anew."""
    model, is_broken = index.model_id(tx), audit.first_broken(tx) is not None
    findings = [
        Finding(_VECTORS, len(_orphans(tx)), "without a document"),
        Finding(_SKETCHES, ann.count_mismatches(tx, model), "not as with their vectors"),
    ]
    if index.has_model(tx):
        lacking = tx.one("kernel.consistency.count_pending", int, model=model) or 0
        of_others = tx.one("kernel.consistency.count_of_other_models", int, model=model) or 0 if model else lacking
        findings.append(Finding(_DOCUMENTS, lacking - of_others, "without a vector of the configured model"))
        findings.append(Finding(_DOCUMENTS, of_others, _TO_EMBED, note=True))
    findings.append(Finding("audit", int(is_broken), "rows that do not follow from the one before"))
    findings += [Finding("imports", 1, line, note=True) for line in unfinished_imports(tx)]
    findings.append(Finding(_COUNTS, index.count_mismatches(tx), "wrong numbers of memories of a day"))
    for dialect in dialects:
        keys: list[Key] = []
        findings += index_check.check_dialect(tx, dialect, keys, report)
        findings.append(_impossible(tx, dialect, report))
        differing.append((dialect, keys))
    wrong = run_steps(tx, quarantine.flag_steps(repair=False))
    findings.append(Finding(_QUARANTINE, wrong, "memories not marked as they look"))
    return findings


def unfinished_imports(tx: Tx) -> list[str]:
    """Return a line for each import that was cut off, with the ways to go on and back."""
    return [_UNFINISHED.format(call.id, call.tool) for call in audit.unfinished_imports(tx)]


def _impossible(tx: Tx, dialect: Dialect, report: Report | None) -> Finding:
    """Count and report the rows that no tool would have written, such as those of an import of an older version."""
    count = 0
    for line in problems(tx, dialect):
        count += 1
        if report is not None:
            report(line)
    return Finding(dialect.name, count, "rows with a time or a path that is none", True)


def _orphans(tx: Tx) -> list[int]:
    return tx.all("kernel.consistency.orphans", int)


def _repair_steps(parts: Set[str], orphans: Sequence[int]) -> Steps[None]:
    """Rebuild the parts that differ, and delete the vectors of documents that are not there."""
    tx = yield
    tx.flush_deferred()
    if _QUARANTINE in parts:
        yield from quarantine.flag_steps(repair=True)
        tx = yield
    if _COUNTS in parts:
        index.rebuild(tx)
        tx = yield
    for start in range(0, len(orphans), _STEP_ROWS):
        index.delete_vectors(tx, orphans[start : start + _STEP_ROWS])
        tx = yield
    if _SKETCHES in parts:
        upto = ann.last_deletion_id(tx)
        while ann.delete_block(tx):
            tx = yield
        while ann.trim_deletions(tx, upto, _STEP_DELETIONS):
            tx = yield


def reindex(
    file: Path,
    context: StoreContext,
    dialects: Sequence[Dialect],
    progress: OnProgress | None = None,
    *,
    alone: bool = True,
) -> int:
    """Rebuild full text and every vector from the rows; returns the number of vectors.

    It goes on in slices, so that others write meanwhile, and searches use the old rows until then. A reindex that
    was cut off leaves a sound index, and the next reindex with the same model goes on from there.
    """
    with open_writer(file, context) as db:
        turns = Turns(db, alone=alone)
        turns.run(dropped.removal_steps())
        turns.run(renewal_steps(dialects))
        turns.run(db.rebuild_full_text())
        return turns.run(_embedding_steps(progress), _Ahead(db, context.embedder))


class _Place(NamedTuple):
    """How far a reindex has come: the last embedded document, and the last document and vector at its start."""

    doc: int
    last: int
    vector: int


def _place(tx: Tx) -> _Place | None:
    """Return the place at which a reindex with the configured model was cut off."""
    doc, last, vector, identity = (tx.one("kernel.consistency.embedded", str) or "0 0 0 -").split(" ", 3)
    return _Place(int(doc), int(last), int(vector)) if identity == _identity(tx) else None


def _identity(tx: Tx) -> str:
    model = tx.embedding_model
    return model[0] if model else ""


def _embedding_steps(progress: OnProgress | None) -> Steps[int]:
    """Embed every document anew, then deletes the rest of the vectors before; returns the number of documents.

    Those that came meanwhile are embedded by who wrote them.
    """
    tx = yield
    if (place := _place(tx)) is None:
        place = _Place(0, index.last_doc_id(tx), tx.one("kernel.consistency.last_vector", int) or 0)
    total = tx.one("kernel.consistency.count_docs_upto", int, doc=place.last) or 0
    count = tx.one("kernel.consistency.count_docs_upto", int, doc=place.doc) or 0
    while rows := _documents_after(tx, place.doc, place.last, _STEP_ROWS):
        _replace_vectors(tx, rows, {})
        place = place._replace(doc=rows[-1].doc)
        value = f"{place.doc} {place.last} {place.vector} {_identity(tx)}"
        tx.run("kernel.consistency.set_embedded", value=value)
        count += len(rows)
        if progress:
            progress(count, max(count, total))
        tx = yield
    yield from _trim_steps(place.vector)
    return count if index.has_model((yield)) else 0


def _trim_steps(upto: int) -> Steps[None]:
    """Delete the blocks up to a vector, which are all replaced, and the part of the log that no block needs."""
    tx = yield
    while ann.forget_vectors(tx, upto, _STEP_ROWS):
        tx = yield
    if number := index.model_id(tx):
        ann.rewrite_block(tx, number, 0)  # the first block that is left began among them
    tx = yield
    deletion = ann.deletions_upto(tx, upto)
    while ann.trim_deletions(tx, deletion, _STEP_DELETIONS):
        tx = yield
    tx.run("kernel.consistency.finish_embedding")


class _Ahead:
    """Embed the texts that the next slice begins with, before it has the lock."""

    def __init__(self, db: CommandConnection, embedder: Embedder | None) -> None:
        self._db = db
        self._embedder = embedder
        self._known: dict[str, Embedding] = {}

    def __call__(self) -> dict[str, Embedding]:
        if self._embedder is None:
            return {}
        rows = self._db.read(CallContext(), _next_documents)
        texts = dict.fromkeys(row.text for row in rows)
        new = [text for text in texts if text not in self._known]
        with suppress(OSError, ValueError):  # a model that cannot be read: the slice fails
            self._known |= dict(zip(new, self._embedder.embed(new), strict=True))
        self._known = {text: self._known[text] for text in texts if text in self._known}
        return self._known


def _next_documents(tx: Tx) -> list[_Pending]:
    place = _place(tx)
    after, upto = (place.doc, place.last) if place else (0, index.last_doc_id(tx))
    return _documents_after(tx, after, upto, _AHEAD_ROWS)


def _documents_after(tx: Tx, doc: int, upto: int, limit: int) -> list[_Pending]:
    return tx.all("kernel.consistency.documents_after", _Pending, after=doc, upto=upto, limit=limit, bytes=SLICE_BYTES)


def complete_index(store: Store, dialects: Sequence[Dialect], stop: Callable[[], bool]) -> None:
    """Bring rows of other releases and models to the present form, while calls are served."""
    renew_index(store, dialects, stop)
    embed_missing(store, stop)


def embed_missing(store: Store, stop: Callable[[], bool]) -> int:
    """Embed documents without a vector of the configured model while calls are served; returns how many.

    Until then search finds them by words only. Vectors of another model are never compared with a query, and are
    replaced batch by batch.
    """
    embedder = store.context.embedder
    if embedder is None:
        return 0
    count = after = 0
    while not stop():
        with _waiting():
            pending: list[_Pending] = store.read_sync(partial(_pending, after=after, limit=_BATCH_ROWS))
            texts = [row.text for row in pending]
            vectors = dict(zip(texts, embedder.embed(texts), strict=True))
            if not pending:
                break
            count += store.write_sync(partial(_replace_pending, rows=pending, vectors=vectors))
            after = pending[-1].doc
    return count


@contextmanager
def _waiting() -> Generator[None]:
    """Wait a moment if the queue of the writer was full, so that the caller tries again."""
    try:
        yield
    except Fault as fault:
        if fault.code != "busy":
            raise
        time.sleep(_RETRY_SECONDS)


def _pending(tx: Tx, *, after: int, limit: int) -> list[_Pending]:
    model = index.model_id(tx)
    return tx.all("kernel.consistency.pending", _Pending, model=model, after=after, limit=limit, bytes=SLICE_BYTES)


def _replace_pending(tx: Tx, rows: Sequence[_Pending], vectors: dict[str, Embedding]) -> int:
    """Embed those that no other write has embedded, changed or deleted meanwhile."""
    still = {*_pending(tx, after=rows[0].doc - 1, limit=len(rows))}
    return _replace_vectors(tx, [row for row in rows if row in still], vectors)


def _replace_vectors(tx: Tx, rows: Sequence[_Pending], vectors: dict[str, Embedding]) -> int:
    tx.preload(vectors)
    index.delete_vectors(tx, [row.doc for row in rows])
    index.insert_vectors(tx, [(row.doc, row.text) for row in rows])
    return len(rows)


def _missing_steps() -> Steps[None]:
    tx = yield
    after = 0
    while rows := _pending(tx, after=after, limit=_STEP_ROWS) if index.has_model(tx) else []:
        _replace_vectors(tx, rows, {})
        after = rows[-1].doc
        tx = yield


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
        with _waiting():
            store.write_sync(work)


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
    last = tx.one("kernel.consistency.outdated_to", int, setting=_TEXTS_LEFT)
    if last is None:
        return None
    rows = tx.all("kernel.consistency.texts_outdated", _Document, last=last, limit=limit, bytes=SLICE_BYTES)
    keys = [(row.space, row.key) for row in rows]
    return _Texts(index_check.differing_among(tx, dialects, keys), rows[-1].doc - 1 if rows else 0)


def _renew_texts(tx: Tx, dialects: Sequence[Dialect], texts: _Texts) -> None:
    index_check.renew_documents(tx, dialects, texts.keys)
    if texts.rest > 0:
        tx.run("kernel.consistency.set_outdated_to", setting=_TEXTS_LEFT, last=str(texts.rest))
    else:
        tx.run("kernel.consistency.finish_outdated", setting=_TEXTS_LEFT)


def _outdated_to(tx: Tx) -> int:
    return tx.one("kernel.consistency.outdated_to", int, setting=_WORDS_LEFT) or 0


def _renew_batch(tx: Tx, limit: int) -> None:
    last = _outdated_to(tx)
    rows = tx.all("kernel.consistency.outdated", _Outdated, last=last, limit=limit, bytes=SLICE_BYTES)
    _renew(tx, rows)
    last = rows[-1].doc - 1 if rows else 0
    if last > 0:
        tx.run("kernel.consistency.set_outdated_to", setting=_WORDS_LEFT, last=str(last))
    else:
        tx.run("kernel.consistency.finish_outdated", setting=_WORDS_LEFT)


def _renew(tx: Tx, rows: Sequence[_Outdated]) -> None:
    new_words = [(doc, whole) for doc, text, words in rows if (whole := completed(text, words)) != words]
    index.set_words(tx, new_words)
    # A text that a model spells letter by letter had a vector.
    spelled_rows = [(doc, text) for doc, text, _ in rows if not text.isascii()]
    if spelled_rows and index.has_model(tx):
        index.delete_vectors(tx, [doc for doc, _ in spelled_rows])
        index.insert_vectors(tx, spelled_rows)

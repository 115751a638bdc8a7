"""Compares the index with the memories of a dialect: which differ, and which of the texts is sound."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from kernel.calls.dialect import Dialect, IndexSource, Keys
from kernel.core.text import one_line
from kernel.search import index
from kernel.store import history
from kernel.store.long_work import Steps
from kernel.store.transaction import SLICE_BYTES, Tx

Report = Callable[[str], None]
_SLICE_ROWS = 1000
_STEP_KEYS = 8  # of one step: a slice is cut between steps
_DAMAGED, _LOST = ", and so has the history", ", the row is lost"
LOST_OR_DAMAGED = (_DAMAGED, _LOST)  # how the line of such a memory ends
_SHOWN_CHARS = 60  # of a text that differs, from shortly before the difference
_BEFORE_CHARS = 15


class _WithText(Protocol):
    @property
    def text(self) -> str: ...


Row = TypeVar("Row", bound=_WithText)


class Finding(NamedTuple):
    """One inconsistency: the part of the file, how many rows, and the mistake; no repair mends it if it is `kept`. A
    `note` is no mistake: something that is still to be done.
    """

    part: str
    rows: int
    what: str
    kept: bool = False
    note: bool = False


class _Document(NamedTuple):
    space: str
    key: str
    text: str
    grams: str


class Key(NamedTuple):
    space: str
    key: str


def check_dialect(tx: Tx, dialect: Dialect, mend: list[Key], report: Report | None = None) -> list[Finding]:
    """Return the differences of the index from the memories of a dialect; `mend` gets the keys of sound memories.

    The history decides: if it agrees with the index and not with the row, the row is damaged, and the index, which
    holds the only sound copy, stays as it is. So does a document whose memory is gone without a word in the history.
    """
    differing = unsound = extras = missing = 0
    keys: set[tuple[str, str]] = set()
    for sources in _slices_of(tx, dialect):
        for source, document in _differing(tx, sources):
            is_damaged = document is not None and _contradicts_history(tx, source, document.text)
            unsound, differing = unsound + is_damaged, differing + (not is_damaged)
            if report:
                report(_difference(source, document, is_damaged))
            if not is_damaged:
                mend.append(Key(source.space, source.key))
        keys.update((source.space, source.key) for source in sources)
    for extra in _extra(tx, dialect, keys):
        is_lost = history.latest(tx, *extra) is not None
        missing, extras = missing + is_lost, extras + (not is_lost)
        if report:
            report(f"{extra.space} {extra.key}: only the index holds it" + (_LOST if is_lost else ""))
        if not is_lost:
            mend.append(extra)
    return [
        Finding(dialect.name, differing, "memories the index lacks or holds differently"),
        Finding(dialect.name, unsound, "memories whose row is damaged: index and history agree on another text", True),
        Finding(dialect.name, missing, "memories whose row is lost: index and history have them", True),
        Finding(dialect.name, extras, "documents without a memory"),
    ]


def mending_steps(dialect: Dialect, keys: Sequence[Key]) -> Steps[None]:
    tx = yield
    for start in range(0, len(keys) if dialect.memories.sources_of else 0, _STEP_KEYS):
        rebuild_documents(tx, dialect, keys[start : start + _STEP_KEYS])
        tx = yield


def differing_keys(tx: Tx, dialect: Dialect) -> list[Key]:
    """Return the memories that the index lacks or holds differently, and the documents without a memory."""
    keys: set[tuple[str, str]] = set()
    differing: list[Key] = []
    for sources in _slices_of(tx, dialect):
        differing += [Key(source.space, source.key) for source, _ in _differing(tx, sources)]
        keys.update((source.space, source.key) for source in sources)
    return differing + _extra(tx, dialect, keys)


def differing_among(tx: Tx, dialects: Sequence[Dialect], keys: Keys) -> list[Key]:
    """Return those of the memories of which the index holds something else than their rows say."""
    pairs = (pair for sources in slices(sources_of(tx, dialects, keys)) for pair in _differing(tx, sources))
    return [Key(source.space, source.key) for source, document in pairs if document is not None]


def renew_documents(tx: Tx, dialects: Sequence[Dialect], keys: Keys) -> None:
    """Index the rows of documents, with their authors and times; a row that contradicts the history is left out."""
    origins = _origins(tx, keys)
    for sources in slices(sources_of(tx, dialects, keys)):
        for source, document in _differing(tx, sources):
            if document is not None and not _contradicts_history(tx, source, document.text):
                put_source(tx, source, origins[source.space, source.key])


def sources_of(tx: Tx, dialects: Sequence[Dialect], keys: Keys) -> Iterator[IndexSource]:
    wanted_keys = set(keys)
    for dialect in dialects:
        own = [key for key in keys if key[0].partition(":")[0] == dialect.name]
        for source in dialect.memories.sources_of(tx, own) if own and dialect.memories.sources_of else ():
            if (source.space, source.key) in wanted_keys:
                yield source


def put_source(tx: Tx, source: IndexSource, origin: index.Origin | None = None) -> None:
    index.put(tx, source.space, source.key, source.text, scope=source.scope, words=source.words, origin=origin)


def _origins(tx: Tx, keys: Keys) -> dict[tuple[str, str], index.Origin]:
    """Return the authors and times of the documents of some memories."""
    docs = index.documents(tx, index.doc_ids(tx, keys)).values()
    return {
        (doc.space, doc.key): index.Origin((doc.dialect, doc.tool, doc.actor), doc.created_at, doc.updated_at)
        for doc in docs
    }


def rebuild_documents(tx: Tx, dialect: Dialect, keys: Keys) -> None:
    """Make the index agree with some memories of a dialect, which are taken for right; documents keep their authors
    and times.
    """
    if dialect.memories.sources_of is None:
        return
    for start in range(0, len(keys), _SLICE_ROWS):
        slice_keys = keys[start : start + _SLICE_ROWS]
        sound_keys: set[tuple[str, str]] = set()
        for sources in slices(dialect.memories.sources_of(tx, slice_keys)):
            differing = [source for source, _ in _differing(tx, sources)]
            origins = _origins(tx, [(source.space, source.key) for source in differing])
            for source in differing:
                put_source(tx, source, origins.get((source.space, source.key)))
            sound_keys.update((source.space, source.key) for source in sources)
        for key in slice_keys:
            if key not in sound_keys:
                index.drop(tx, *key)


def _extra(tx: Tx, dialect: Dialect, keys: set[tuple[str, str]]) -> list[Key]:
    if dialect.memories.sources is None:
        return []
    indexed_keys = tx.each("kernel.consistency.keys_of_dialect", Key, dialect=dialect.name)
    return [key for key in indexed_keys if key not in keys]


def _contradicts_history(tx: Tx, source: IndexSource, in_index: str) -> bool:
    text = None if in_index == source.text else history.latest(tx, source.space, source.key)
    return text is not None and text in in_index and text not in source.text


def _difference(source: IndexSource, document: _Document | None, is_damaged: bool) -> str:
    name, text = f"{source.space} {source.key}", source.text
    if document is None:
        return f"{name}: the index lacks it"
    if document.text == text:
        return f"{name}: the index holds other words for it"
    start = next((at for at, pair in enumerate(zip(text, document.text, strict=False)) if pair[0] != pair[1]), 0)
    row, in_index = _shown(text, start), _shown(document.text, start)
    return f"{name}: the row has {row}, the index has {in_index}" + (_DAMAGED if is_damaged else "")


def _shown(text: str, start: int) -> str:
    begin = max(0, start - _BEFORE_CHARS) if len(text) > _SHOWN_CHARS else 0
    return f'"{one_line(text[begin:], _SHOWN_CHARS)}"'


def _slices_of(tx: Tx, dialect: Dialect) -> Iterator[list[IndexSource]]:
    return slices(dialect.memories.sources(tx) if dialect.memories.sources else iter(()))


def slices(rows: Iterator[Row], most: int = _SLICE_ROWS) -> Iterator[list[Row]]:
    """Yield rows in lists of a bounded size, so that not all texts of a store lie in memory at once."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row.text)
        if size > SLICE_BYTES or len(batch) == most:
            yield batch
            batch, size = [], 0
    yield batch


def _differing(tx: Tx, sources: Sequence[IndexSource]) -> list[tuple[IndexSource, _Document | None]]:
    keys = [(source.space, source.key) for source in sources]
    rows = {(row.space, row.key): row for row in tx.all("kernel.consistency.documents", _Document, keys=keys)}
    pairs = [(source, rows.get((source.space, source.key))) for source in sources]
    return [
        (source, row)
        for source, row in pairs
        if row is None or row.text != source.text or row.grams != index.indexed_words(source.text, source.words)
    ]

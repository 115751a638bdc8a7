"""Compares the index with the memories of a dialect: which differ, and which of the texts is the sound one."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

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


class Finding(NamedTuple):
    """One inconsistency: the part of the file, how many rows, and the mistake; a `kept` one no repair mends."""

    part: str
    rows: int
    what: str
    kept: bool = False


class _Document(NamedTuple):
    space: str
    key: str
    text: str
    grams: str


class Key(NamedTuple):
    """The name of a memory in the index."""

    space: str
    key: str


def check_dialect(tx: Tx, dialect: Dialect, mend: list[Key], report: Report | None = None) -> list[Finding]:
    """Return where the index differs from the memories of a dialect; `mend` gets the keys of those that are sound.

    The history decides: if it agrees with the index and not with the row, the row is damaged, and the index, which
    holds the only sound copy, stays as it is. So does a document whose memory is gone without a word in the history.
    """
    differing, damaged, extras, lost, tell = 0, 0, 0, 0, report or _ignore
    keys: set[tuple[str, str]] = set()
    for several in _slices(dialect.memories.sources(tx) if dialect.memories.sources else iter(())):
        for source, held in _differing(tx, several):
            broken = held is not None and _contradicts_history(tx, source, held.text)
            damaged, differing = damaged + broken, differing + (not broken)
            tell(_difference(source, held, broken))
            if not broken:
                mend.append(Key(source.space, source.key))
        keys.update((source.space, source.key) for source in several)
    for extra in _extra(tx, dialect, keys):
        gone = history.latest(tx, *extra) is not None
        lost, extras = lost + gone, extras + (not gone)
        tell(f"{extra.space} {extra.key}: only the index holds it" + (_LOST if gone else ""))
        if not gone:
            mend.append(extra)
    return [
        Finding(dialect.name, differing, "memories the index lacks or holds differently"),
        Finding(dialect.name, damaged, "memories whose row is damaged: index and history agree on another text", True),
        Finding(dialect.name, lost, "memories whose row is lost: index and history have them", True),
        Finding(dialect.name, extras, "documents without a memory"),
    ]


def mending_steps(dialect: Dialect, keys: Sequence[Key]) -> Steps[None]:
    """Makes the index agree with some memories of a dialect, in steps."""
    tx = yield
    for start in range(0, len(keys) if dialect.memories.sources_of else 0, _STEP_KEYS):
        assert dialect.memories.sources_of is not None
        rebuild_documents(tx, dialect.memories.sources_of, keys[start : start + _STEP_KEYS])
        tx = yield


def differing_keys(tx: Tx, dialect: Dialect) -> list[Key]:
    """Return the memories of a dialect that the index lacks or holds differently, and its documents without a
    memory.
    """
    keys: set[tuple[str, str]] = set()
    found: list[Key] = []
    for several in _slices(dialect.memories.sources(tx) if dialect.memories.sources else iter(())):
        found += [Key(source.space, source.key) for source, _ in _differing(tx, several)]
        keys.update((source.space, source.key) for source in several)
    return found + _extra(tx, dialect, keys)


def differing_among(tx: Tx, dialects: Sequence[Dialect], keys: Keys) -> list[Key]:
    """Return those of the memories of which the index holds something else than their rows say."""
    found = (_differing(tx, several) for several in _slices(_sources_of(tx, dialects, keys)))
    return [Key(source.space, source.key) for pairs in found for source, held in pairs if held is not None]


def renew_documents(tx: Tx, dialects: Sequence[Dialect], keys: Keys) -> None:
    """Index what the rows of some documents say, with the author and the times that they have; what contradicts the
    history is left to a check.
    """
    docs = index.documents(tx, index.doc_ids(tx, keys)).values()
    origins = {
        (doc.space, doc.key): index.Origin((doc.dialect, doc.tool, doc.actor), doc.created_at, doc.updated_at)
        for doc in docs
    }
    for several in _slices(_sources_of(tx, dialects, keys)):
        for source, held in _differing(tx, several):
            if held is not None and not _contradicts_history(tx, source, held.text):
                _put(tx, source, origins[source.space, source.key])


def _sources_of(tx: Tx, dialects: Sequence[Dialect], keys: Keys) -> Iterator[IndexSource]:
    asked = set(keys)
    for dialect in dialects:
        own = [key for key in keys if key[0].partition(":")[0] == dialect.name]
        for source in dialect.memories.sources_of(tx, own) if own and dialect.memories.sources_of else ():
            if (source.space, source.key) in asked:
                yield source


def _put(tx: Tx, source: IndexSource, origin: index.Origin | None = None) -> None:
    index.put(tx, source.space, source.key, source.text, scope=source.scope, words=source.words, origin=origin)


def rebuild_index(tx: Tx, dialect: Dialect) -> None:
    """Makes the index agree with the memories of a dialect, which are taken for right."""
    keys = _put_differing(tx, dialect.memories.sources(tx) if dialect.memories.sources else iter(()))
    for extra in _extra(tx, dialect, keys):
        index.drop(tx, *extra)


def rebuild_documents(tx: Tx, sources_of: Callable[[Tx, Keys], Iterator[IndexSource]], keys: Keys) -> None:
    """The same for some memories of a dialect alone."""
    for start in range(0, len(keys), _SLICE_ROWS):
        several = keys[start : start + _SLICE_ROWS]
        found = _put_differing(tx, sources_of(tx, several))
        for key in several:
            if key not in found:
                index.drop(tx, *key)


def _put_differing(tx: Tx, sources: Iterator[IndexSource]) -> set[tuple[str, str]]:
    """Index memories that the index lacks or holds differently; return the keys of all sources."""
    keys: set[tuple[str, str]] = set()
    for several in _slices(sources):
        for source, _ in _differing(tx, several):
            _put(tx, source)
        keys.update((source.space, source.key) for source in several)
    return keys


def _extra(tx: Tx, dialect: Dialect, keys: set[tuple[str, str]]) -> list[Key]:
    if dialect.memories.sources is None:
        return []
    return [
        held for held in tx.each("kernel.consistency.keys_of_dialect", Key, dialect=dialect.name) if held not in keys
    ]


def _contradicts_history(tx: Tx, source: IndexSource, indexed: str) -> bool:
    """Return whether the last text of the history is in the index and not in the row."""
    known = None if indexed == source.text else history.latest(tx, source.space, source.key)
    return known is not None and known in indexed and known not in source.text


def _difference(source: IndexSource, held: _Document | None, broken: bool) -> str:
    name = f"{source.space} {source.key}"
    if held is None:
        return f"{name}: the index lacks it"
    if held.text == source.text:
        return f"{name}: the index holds other words for it"
    start = next((at for at, pair in enumerate(zip(source.text, held.text, strict=False)) if pair[0] != pair[1]), 0)
    row, indexed = (_shown(text, start) for text in (source.text, held.text))
    return f"{name}: the row has {row}, the index has {indexed}" + (_DAMAGED if broken else "")


def _shown(text: str, start: int) -> str:
    begin = max(0, start - _BEFORE_CHARS) if len(text) > _SHOWN_CHARS else 0
    return f'"{one_line(text[begin:], _SHOWN_CHARS)}"'


def _ignore(_line: str) -> None:
    pass


def _slices(sources: Iterator[IndexSource]) -> Iterator[list[IndexSource]]:
    """Yield the sources in lists of a bounded size, so that not all texts of a store lie in memory at once."""
    several: list[IndexSource] = []
    size = 0
    for source in sources:
        several.append(source)
        size += len(source.text)
        if size > SLICE_BYTES or len(several) == _SLICE_ROWS:
            yield several
            several, size = [], 0
    yield several


def _differing(tx: Tx, sources: Sequence[IndexSource]) -> list[tuple[IndexSource, _Document | None]]:
    """Return the memories that the index lacks or holds differently, and its present documents."""
    keys = [(source.space, source.key) for source in sources]
    held = {(row.space, row.key): row for row in tx.all("kernel.consistency.documents", _Document, keys=keys)}
    pairs = [(source, held.get((source.space, source.key))) for source in sources]
    return [(source, row) for source, row in pairs if row is None or (row.text, row.grams) != _indexed(source)]


def _indexed(source: IndexSource) -> tuple[str, str]:
    return source.text, index.indexed_words(source.text, source.words)

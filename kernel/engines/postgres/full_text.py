"""Search on PostgreSQL: words of SQLite's tokenizer in an inverted index of arrays, ranked as FTS5 ranks them, and the
exact cosines of stored vectors that are not in memory."""

import hashlib
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kernel.core.text import json_text
from kernel.store.long_work import Steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kernel.engines.postgres.connection import Connection
    from kernel.engines.postgres.session import Sent

    Numbers = NDArray[np.int64]

MOST_DOCS = 30_000  # documents of a word; of more, the database finds the newest
_MOST_ADDED = 1000  # documents since the last read; for more, it is cheaper to begin again
_MOST_WORDS = 32  # that are read for one statement
_MOST_BYTES = 64 << 20  # of all tenants of a process
_BYTES_OF_WORD = 400  # besides its documents
_SETTLED = 6  # reads of an era by the database, so that a store in which much is deleted stays with it
_RECORD = [("doc", ">i8"), ("size", ">i4"), ("count", ">i2")]


class _Memory:
    """The memory of the words of all tenants of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.bytes = 0

    def take(self, size: int) -> None:
        with self._lock:
            self.bytes += size


_memory = _Memory()


class Seen(NamedTuple):
    """The view of a transaction that reads: the last ids of documents, vectors and deletions, the numbers of documents
    and of their words, and the era.
    """

    last: int
    vector: int
    deletion: int
    docs: int
    size: int
    era: int

    @property
    def ids(self) -> tuple[int, int, int]:
        return self[:3]


class Occurrences(NamedTuple):
    """The documents that hold a word, in rising order, their sizes in words, and how often they hold it."""

    docs: "Numbers"
    sizes: "Numbers"
    counts: "Numbers"

    def until(self, last: int) -> "Occurrences":
        if not len(self.docs) or self.docs[-1] <= last:
            return self
        end = int(self.docs.searchsorted(last, "right"))
        return Occurrences(self.docs[:end], self.sizes[:end], self.counts[:end])

    def followed_by(self, rows: Sequence[tuple[int, int, int]]) -> "Occurrences":
        import numpy as np

        more = np.array(rows, np.int64).T
        return Occurrences(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))

    @property
    def bytes(self) -> int:
        return 24 * len(self.docs) + _BYTES_OF_WORD


Held = dict[str, Occurrences]


class WordIndex:
    """The words of one tenant, shared by the connections of a process that read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Held = {}
        self._large: set[str] = set()
        self._era: int = -1
        self._last: int = 0
        self._reads: int = 0

    def occurrences(self, db: "Connection", view: Seen, words: Iterable[str]) -> Held | None:
        """Return the documents of the words, as the transaction sees them; None if only the database has them."""
        distinct = set(words)
        with self._lock:
            added = self._follow(db, view)
            missing = [word for word in distinct if word not in self._held]
            older = view.last < self._last  # words read now would lack rows that are held of other words
            useless = self._reads <= _SETTLED or (missing and older) or not self._large.isdisjoint(distinct)
            records = None if useless or not missing else self._ask(db, missing)
            if added is not None and not self._append(added.fetchall()):
                return None
            if useless or len(missing) > _MOST_WORDS or (records is not None and not self._read(records, missing)):
                return None
            hits = {word: self._held.pop(word) for word in distinct}
            self._held |= hits  # words used last are forgotten last
            self._forget()
        return {word: documents.until(view.last) for word, documents in hits.items()}

    def _follow(self, db: "Connection", view: Seen) -> "Sent | None":
        """Begin to bring held words to the state that the transaction sees, or beyond it: return the rows to add."""
        added = None
        if view.era != self._era:
            self._clear()
            self._era, self._last, self._reads = view.era, view.last, 0
        elif view.last > self._last:
            added = db.send("engine.full_text.added", after=self._last, limit=_MOST_ADDED + 1)
            self._last = view.last
        self._reads += 1
        return added

    def _ask(self, db: "Connection", words: list[str]) -> "Sent | None":
        if len(words) > _MOST_WORDS:
            return None
        return db.send("engine.full_text.occurrences", stems=words, most=MOST_DOCS + 1)

    def _append(self, rows: Sequence[tuple[Any, ...]]) -> bool:
        if len(rows) > _MOST_ADDED:
            self._clear()
            return False
        rows_of_stem: dict[str, list[tuple[int, int, int]]] = {}
        for doc, size, stems, counts in rows:
            for stem, count in zip(stems, counts, strict=True):
                if stem in self._held:
                    rows_of_stem.setdefault(stem, []).append((doc, size, count))
        for stem, more in rows_of_stem.items():
            self._put(stem, self._held[stem].followed_by(more))
        return True

    def _read(self, rows: "Sent", words: list[str]) -> bool:
        """Read the documents of words; return whether none of them has more than `MOST_DOCS`."""
        import numpy as np

        for word, records in rows.fetchall():
            table = np.frombuffer(records or b"", _RECORD)
            if len(table) > MOST_DOCS:
                self._large.add(word)
                continue
            table = table[np.argsort(table["doc"], kind="stable")]
            self._put(word, Occurrences(*(table[name].astype(np.int64) for name, _ in _RECORD)))
        return self._large.isdisjoint(words)

    def _put(self, word: str, documents: Occurrences) -> None:
        before = self._held.get(word)
        self._held[word] = documents
        _memory.take(documents.bytes - (before.bytes if before else 0))

    def _forget(self) -> None:
        while self._held and _memory.bytes > _MOST_BYTES:
            oldest = next(iter(self._held))
            _memory.take(-self._held.pop(oldest).bytes)

    def _clear(self) -> None:
        _memory.take(-sum(word.bytes for word in self._held.values()))
        self._held = {}
        self._large = set()


_K1, _B = 1.2, 0.75  # as in FTS5's bm25() (https://sqlite.org/fts5.html#the_bm25_function)
_LEAST_IDF = 1e-6  # of a term in more than half of the rows, in FTS5
_MOST = 32_767  # a count is a smallint
_PAGE = 500
_STEP_ROWS = 8  # documents; a slice is cut between steps
_NO_LIMIT = 2**31
_LONGEST = 2600  # bytes of a stem as it is; an entry of a GIN index has 2,700
_PART = 60  # characters of a longer stem, before its digest
_MOST_TF = 255  # as kernel/search/bm25.py packs term frequencies
_PLACE = "quipuplace"
_WITH_PARTS = frozenset({"scopes:guidelines", "scopes:knowledge", "scopes:tools"})  # as in the query of part_texts
# Words leave the index with their documents.
_DROPPED = (
    *("can_drop", "drop_ids", "drop_partitions", "log_vectors", "delete_vectors", "unflag", "count_out", "delete_docs"),
    *("next", "fts_delete", "parts_delete", "forget", "forget_all"),
)

Row = tuple[Any, ...]
Params = Mapping[str, Any]
_CLAUSE = re.compile(r'(place|\{text grams\}) : \(((?:"(?:[^"]|"")*+"|[^"()])*+)\)')
PHRASE = re.compile(r'"((?:[^"]|"")*)"(\*?)|quipuplace(\d+)')


class Match(NamedTuple):
    """An FTS5 expression: the terms that a row has to hold, and the stem of each phrase; a partition only selects."""

    every: list[str] | None
    some: list[list[str]]
    places: list[str] | None
    phrases: list[str]


class Matching(NamedTuple):
    """Documents, the newest first, their sizes in words, and how often each holds each phrase."""

    docs: "Numbers"
    sizes: "Numbers"
    counts: "Numbers"


def match_with_tf(db: "Connection", params: Params) -> list[Row]:
    import numpy as np

    match = parse(params["query"], db.stems)
    phrases = match.phrases[params.get("skip", 0) :]
    docs, size = _totals(db)
    mean = (size + docs) / docs - 1 if docs else 0.0
    lists = {name: _list(params.get(name)) for name in ("partitions", "ids")}
    hits = matching(db, match, phrases, params.get("limit", _NO_LIMIT), lists["partitions"], lists["ids"])
    table = np.zeros(len(hits.docs), [("length", "<u4"), ("mean", "<f4"), ("tf", np.uint8, (len(phrases),))])
    table["length"], table["mean"], table["tf"] = hits.sizes, mean, np.minimum(hits.counts, _MOST_TF)
    return list(zip(hits.docs.tolist(), [row.tobytes() for row in table], strict=True))


def ranked(db: "Connection", params: Params) -> list[Row]:
    import numpy as np

    match = parse(params["query"], db.stems)
    words = [phrase for phrase in match.phrases if not phrase.startswith(":")]
    hits = matching(db, match, words, params.get("newest", _NO_LIMIT), _list(params.get("partitions")))
    if not len(hits.docs):
        return []
    docs, size = _totals(db)
    frequencies = _frequencies(db, sorted(set(words)))
    mean = (size + docs) / docs
    norms = _K1 * (1.0 - _B + _B * (hits.sizes + 1) / mean)
    scores = np.zeros(len(hits.docs))
    for word, counts in zip(words, hits.counts.T, strict=True):
        scores += _idf(docs, frequencies.get(word, 0)) * ((counts * (_K1 + 1.0)) / (counts + norms))
    best = np.lexsort((hits.docs, -scores))[: params.get("best")]
    return list(zip(hits.docs[best].tolist(), scores[best].tolist(), strict=True))


def _idf(docs: int, hits: int) -> float:
    weight = log((docs - hits + 0.5) / (hits + 0.5))
    return weight if weight > 0.0 else _LEAST_IDF


def _frequencies(db: "Connection", stems: list[str]) -> dict[str, int]:
    words = occurrences(db, stems)
    if words is not None:
        return {stem: len(word.docs) for stem, word in words.items()}
    return dict(db.query("engine.full_text.frequencies", stems=stems))


def document_frequencies(db: "Connection", params: Params) -> list[Row]:
    stems: list[str] = _list(params["stems"]) or []
    places = {stem: place_element(stem[len(_PLACE) :]) for stem in stems if stem.startswith(_PLACE)}
    held = {stem: short(stem) for stem in stems if stem not in places}
    frequencies = _frequencies(db, [*dict.fromkeys(held.values())])
    counts = {stem: frequencies[element] for stem, element in held.items()}
    if places:  # large as a rule, and not worth reading for a number
        rows = dict(db.query("engine.full_text.frequencies", stems=list(places.values())))
        counts |= {stem: rows[element] for stem, element in places.items()}
    return [(stem, counts[stem]) for stem in stems if counts[stem]]


def insert_documents(db: "Connection", params: Params) -> list[Row]:
    """Answers kernel.index.insert_docs; the rows are kept for the statements that index them."""
    db.send("engine.full_text.insert_documents", rows=params["rows"])
    rows: list[list[Any]] = msgspec.json.decode(params["rows"])
    db.inserted = {row[0]: (row[0], row[4], row[5], row[3], row[1]) for row in rows}
    return []


def _inserted(db: "Connection", query: str, params: Params) -> list[Row]:
    """Return id, text, words beside it, partition and space of documents, if they were inserted last; else the rows of
    the query.
    """
    ids: list[int] = msgspec.json.decode(params["ids"])
    if ids and db.inserted.keys() >= set(ids):
        return [db.inserted[doc] for doc in ids]
    return db.query(query, ids=params["ids"])


def insert(db: "Connection", params: Params) -> list[Row]:
    _add(db, [row[:4] for row in _inserted(db, "engine.full_text.documents", params)])
    return []


def _add(db: "Connection", documents: Iterable[Row]) -> None:
    rows: list[tuple[int, int, str, str]] = []
    for doc, text, grams, place in documents:
        words = db.stems(text) + db.stems(grams)
        counts = Counter(words)
        counts.update(f"{word[0]}*" for word in words if not word.isascii())
        numbers = [str(min(_MOST, count)) for count in counts.values()]
        stems = [*counts, place_element(place)]
        rows.append((doc, len(words), " ".join(stems), " ".join([*numbers, "1"])))  # no word has a blank
    if rows:
        columns = dict(zip(("docs", "sizes", "stems", "counts"), map(list, zip(*rows, strict=True)), strict=True))
        db.send("engine.full_text.add", **columns)
        db.send("engine.full_text.count", docs=len(rows), size=sum(row[1] for row in rows))


def delete(db: "Connection", params: Params) -> list[Row]:
    db.send("engine.full_text.delete", ids=params["ids"], era=_era())
    return []


def rebuild(db: "Connection", _params: Params) -> list[Row]:
    db.query("engine.full_text.clear")
    db.query("engine.full_text.clear_totals")
    db.query("engine.full_text.begin_era", era=_era())
    for page in _pages(db, "engine.full_text.documents_after", _PAGE):
        _add(db, page)
    return []


def insert_parts(db: "Connection", params: Params) -> list[Row]:
    rows = _inserted(db, "engine.full_text.part_texts", params)
    db.inserted = {}
    _add_parts(db, [row[:2] for row in rows if len(row) == 2 or row[4] in _WITH_PARTS])
    return []


def _add_parts(db: "Connection", texts: Iterable[Row]) -> None:
    rows = [(doc, sorted(set(db.stems(text, trigrams=True)))) for doc, text in texts]
    if rows:
        db.send("engine.full_text.add_parts", rows=json_text(rows))


def rebuild_parts(db: "Connection", _params: Params) -> list[Row]:
    db.query("engine.full_text.clear_parts")
    for page in _pages(db, "engine.full_text.part_texts_after", _PAGE):
        _add_parts(db, page)
    return []


def _pages(db: "Connection", name: str, limit: int) -> Iterator[list[Row]]:
    after = 0
    while page := db.query(name, after=after, limit=limit):
        yield page
        after = page[-1][0]


def rebuild_steps(db: "Connection") -> Steps[None]:
    """Makes the words and trigrams of each document anew, then drops those without a document."""
    yield
    for page in _pages(db, "engine.full_text.documents_after", _STEP_ROWS):
        ids = {"ids": json_text([row[0] for row in page])}
        delete(db, ids)
        _add(db, page)
        db.query("engine.full_text.delete_parts", **ids)
        insert_parts(db, ids)
        yield
    while orphans := db.query("engine.full_text.without_document", limit=_PAGE):
        delete(db, {"ids": json_text([doc for (doc,) in orphans])})
        yield
    db.query("engine.full_text.delete_parts_without_document")
    db.query("engine.full_text.clear_totals")
    ((docs, size),) = db.query("engine.full_text.sums")
    db.query("engine.full_text.count", docs=docs, size=size)


def match_trigrams(db: "Connection", params: Params) -> list[Row]:
    trigrams = {
        trigram
        for word, _, _ in PHRASE.findall(params["query"])
        for trigram in db.stems(word.replace('""', '"'), trigrams=True)
    }
    return db.query("engine.full_text.holding_parts", trigrams=sorted(trigrams), partitions=params["partitions"])


def score(db: "Connection", params: Params) -> list[Row]:
    import numpy as np

    filters = {name: value for name, value in params.items() if name not in ("vector", "limit")}
    rows: list[tuple[int, bytes]] = db.query("engine.vectors.candidates", **filters)
    if not rows:
        return []
    query = np.frombuffer(params["vector"], np.int8).astype(np.float64)
    vectors = np.frombuffer(b"".join([row[1] for row in rows]), np.int8).reshape(len(rows), -1).astype(np.float64)
    sizes = np.sqrt(np.einsum("ij,ij->i", vectors, vectors)) * np.sqrt(query @ query)
    distances = (1.0 - vectors @ query / sizes).astype(np.float32)  # which the functions of SQLite's engine return
    hits = [(row[0], 1.0 - float(distance)) for row, distance in zip(rows, distances, strict=True)]
    hits.sort(key=lambda pair: (-pair[1], pair[0]))
    return hits[: params["limit"]]


def delete_parts(db: "Connection", params: Params) -> list[Row]:
    db.send("engine.full_text.delete_parts", **params)
    return []


def nothing(_db: "Connection", _params: Params) -> list[Row]:
    """Answer a statement that only SQLite needs."""
    return []


def sequences(db: "Connection", _params: Params) -> list[Row]:
    """Answers kernel.index.sequences; the statements that follow use the rest of the row."""
    if db.reading:
        return [(*db.seen.ids, db.seen.docs)]
    return db.query("engine.full_text.sequences")


def _era() -> int:
    """Return a number that no era had before, in any process."""
    return int.from_bytes(os.urandom(8)) >> 1


def _totals(db: "Connection") -> tuple[int, int]:
    if db.reading:
        return db.seen.docs, db.seen.size
    ((docs, size),) = db.query("engine.full_text.totals")
    return docs, size


def _list(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def place_element(place: object) -> str:
    """Return how the index holds the partition of a document; no word has a colon."""
    return f":{place}"


def short(stem: str) -> str:
    """Return how the index holds a stem: one that is too long for an entry as its beginning and a digest."""
    if 4 * len(stem) <= _LONGEST or len(text := stem.encode()) <= _LONGEST:
        return stem
    return stem[:_PART] + hashlib.sha256(text).hexdigest()


def parse(expression: str, stems: Callable[[str], list[str]]) -> Match:
    """Reads an expression as `kernel/search/query.py` writes them: clauses that all hold, of terms in one relation."""
    every: list[str] = []
    alternatives: list[list[str]] = []
    places: list[str] | None = None
    phrases: list[str] = []
    for column, body in _CLAUSE.findall(expression):
        if column == "place":
            places = [place_element(number) for _, _, number in PHRASE.findall(body)]
            phrases += places
            continue
        stems_of_clause = [_element(word, star, stems) for word, star, _ in PHRASE.findall(body)]
        phrases += stems_of_clause
        if '" AND "' in body or '"* AND "' in body:
            every += stems_of_clause
        else:
            alternatives.append(stems_of_clause)
    return Match(every or None, alternatives, places, phrases)


def _element(word: str, star: str, stems: Callable[[str], list[str]]) -> str:
    word = word.replace('""', '"')
    if star:
        return f"{word}*"
    tokens = stems(word)
    return tokens[0] if tokens else word


def occurrences(db: "Connection", words: Iterable[str]) -> Held | None:
    """Return the documents of words from memory; None if only the database has them, as while writing."""
    return db.words.occurrences(db, db.seen, words) if db.reading else None


def matching(
    db: "Connection",
    match: Match,
    phrases: Sequence[str],
    limit: int = _NO_LIMIT,
    places: Sequence[int] | None = None,
    ids: Sequence[int] | None = None,
) -> Matching:
    import numpy as np

    within = [place_element(place) for place in places] if places is not None else match.places
    groups = [[stem] for stem in match.every or ()] + match.some + ([within] if within is not None else [])
    words = occurrences(db, [*(stem for group in groups for stem in group), *phrases]) if groups else None
    if words is not None:
        return _from_memory(words, groups, phrases, limit, ids)
    first, second, *_ = [*match.some, None, None]
    terms = {"every": match.every, "some": first, "other": second, "places": within}
    ids = list(ids) if ids is not None else None
    rows = db.query("engine.full_text.matching", **terms, ids=ids, asked=list(phrases), limit=limit)
    counts = np.array([row[2] for row in rows], np.int64).reshape(len(rows), len(phrases))
    return Matching(np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64), counts)


def _from_memory(
    words: Held, groups: Sequence[Sequence[str]], phrases: Sequence[str], limit: int, ids: Sequence[int] | None
) -> Matching:
    import numpy as np

    parts = [_union([words[stem].docs for stem in group]) for group in groups]
    if ids is not None:
        parts.append(np.unique(np.array(ids, np.int64)))
    docs = reduce(_both, sorted(parts, key=len))[::-1][:limit]
    sizes = np.zeros(len(docs), np.int64)
    counts = np.zeros((len(docs), len(phrases)), np.int64)
    columns: dict[str, list[int]] = {}
    for at, stem in enumerate(phrases):
        columns.setdefault(stem, []).append(at)
    for stem, word in words.items():
        if not len(word.docs):
            continue
        at = word.docs.searchsorted(docs)
        hits = word.docs.take(at, mode="clip") == docs
        np.copyto(sizes, word.sizes.take(at, mode="clip"), where=hits)
        if stem in columns:
            counts[:, columns[stem]] = np.where(hits, word.counts.take(at, mode="clip"), 0)[:, None]
    return Matching(docs, sizes, counts)


def _union(parts: Sequence["Numbers"]) -> "Numbers":
    import numpy as np

    return parts[0] if len(parts) == 1 else np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))


def _both(shorter: "Numbers", longer: "Numbers") -> "Numbers":
    return shorter[longer.take(longer.searchsorted(shorter), mode="clip") == shorter] if len(longer) else longer


ANSWERED: Mapping[str, Callable[[Any, Params], list[Row]]] = {
    "kernel.compact.merge_full_text": nothing,
    "kernel.compact.merge_parts": nothing,
    "kernel.compact.segments": nothing,
    "kernel.consistency.rebuild_full_text": rebuild,
    "kernel.consistency.rebuild_parts": rebuild_parts,
    **{f"kernel.dropped.{name}": nothing for name in _DROPPED},
    "kernel.index.insert_docs": insert_documents,
    "kernel.index.fts_insert": insert,
    "kernel.index.fts_delete": delete,
    "kernel.index.parts_insert": insert_parts,
    "kernel.index.parts_delete": delete_parts,
    "kernel.index.sequences": sequences,
    "kernel.lexical.document_frequencies": document_frequencies,
    "kernel.lexical.frequencies_alike": document_frequencies,
    "kernel.lexical.match_by_bm25": ranked,
    "kernel.lexical.match_by_bm25_in": ranked,
    "kernel.lexical.match_with_tf": match_with_tf,
    "kernel.lexical.match_with_tf_in": match_with_tf,
    "kernel.lexical.match_with_tf_of": match_with_tf,
    "kernel.lexical.newest_by_bm25": ranked,
    "kernel.vectors.score": score,
    "kernel.index.match_trigrams": match_trigrams,
    "kernel.as_of.document_frequencies": document_frequencies,
}

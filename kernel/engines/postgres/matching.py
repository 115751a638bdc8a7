"""The documents that match an FTS5 expression: from memory if the words are known there, else from the database."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kernel.engines.postgres.word_index import Held, Seen, WordIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

Row = tuple[Any, ...]
Params = Mapping[str, Any]
_NO_LIMIT = 2**31
_CLAUSE = re.compile(r'(place|\{text grams\}) : \(((?:"(?:[^"]|"")*+"|[^"()])*+)\)')
PHRASE = re.compile(r'"((?:[^"]|"")*)"(\*?)|quipuplace(\d+)')


class Engine(Protocol):
    """The part of a connection that full text needs: `words` and `seen` only while it is `reading`."""

    words: WordIndex
    reading: bool

    @property
    def seen(self) -> Seen:
        """Return the words as the transaction sees them."""
        ...

    def query(self, name: str, /, **params: Any) -> list[Row]:
        """Return the rows of a statement of `sql/postgres/engine`."""
        ...

    def stems(self, text: str, *, trigrams: bool = False) -> list[str]:
        """Return the tokens of a text."""
        ...


class Match(NamedTuple):
    """An FTS5 expression: the terms that a row has to hold, and the stem of each phrase; a partition only selects."""

    every: list[str] | None
    some: list[list[str]]
    places: list[str] | None
    phrases: list[str]


def place_element(place: object) -> str:
    """Return how the index holds the partition of a document; no word has a colon."""
    return f":{place}"


def parse(expression: str, stems: Callable[[str], list[str]]) -> Match:
    """Reads an expression as `kernel/search/query.py` writes them: clauses that all hold, of terms in one relation."""
    every: list[str] = []
    some: list[list[str]] = []
    places: list[str] | None = None
    phrases: list[str] = []
    for column, body in _CLAUSE.findall(expression):
        if column == "place":
            places = [place_element(number) for _, _, number in PHRASE.findall(body)]
            phrases += places
            continue
        held = [_element(word, star, stems) for word, star, _ in PHRASE.findall(body)]
        phrases += held
        if '" AND "' in body or '"* AND "' in body:
            every += held
        else:
            some.append(held)
    return Match(every or None, some, places, phrases)


def _element(word: str, star: str, stems: Callable[[str], list[str]]) -> str:
    word = word.replace('""', '"')
    if star:
        return f"{word}*"
    found = stems(word)
    return found[0] if found else word


class Found(NamedTuple):
    """Documents, the newest first, their sizes in words, and how often each holds each stem that was asked for."""

    docs: "Numbers"
    sizes: "Numbers"
    counts: "Numbers"


def occurrences(db: Engine, words: Iterable[str]) -> Held | None:
    """Return where words occur, from memory; None if the database has to be asked, as in a transaction that writes."""
    return db.words.occurrences(db, db.seen, words) if db.reading else None


def matching(
    db: Engine,
    match: Match,
    asked: Sequence[str],
    limit: int = _NO_LIMIT,
    places: Sequence[int] | None = None,
    ids: Sequence[int] | None = None,
) -> Found:
    """Return the newest documents that match."""
    import numpy as np

    within = [place_element(one) for one in places] if places is not None else match.places
    groups = [[stem] for stem in match.every or ()] + match.some + ([within] if within is not None else [])
    known = occurrences(db, [*(stem for group in groups for stem in group), *asked]) if groups else None
    if known is not None:
        return _from_memory(known, groups, asked, limit, ids)
    rows = _rows(db, match._replace(places=within), asked, limit, ids)
    counts = np.array([row[2] for row in rows], np.int64).reshape(len(rows), len(asked))
    return Found(np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64), counts)


def _from_memory(
    known: Held, groups: Sequence[Sequence[str]], asked: Sequence[str], limit: int, ids: Sequence[int] | None
) -> Found:
    """Return the documents that hold a word of each group."""
    import numpy as np

    parts = [_union([known[stem].docs for stem in group]) for group in groups]
    if ids is not None:
        parts.append(np.unique(np.array(ids, np.int64)))
    docs = reduce(_both, sorted(parts, key=len))[::-1][:limit]
    sizes = np.zeros(len(docs), np.int64)
    counts = np.zeros((len(docs), len(asked)), np.int64)
    columns: dict[str, list[int]] = {}
    for at, stem in enumerate(asked):
        columns.setdefault(stem, []).append(at)
    for stem, one in known.items():
        if not len(one.docs):
            continue
        at = one.docs.searchsorted(docs)
        hits = one.docs.take(at, mode="clip") == docs
        np.copyto(sizes, one.sizes.take(at, mode="clip"), where=hits)
        if stem in columns:
            counts[:, columns[stem]] = np.where(hits, one.counts.take(at, mode="clip"), 0)[:, None]
    return Found(docs, sizes, counts)


def _union(parts: Sequence["Numbers"]) -> "Numbers":
    import numpy as np

    return parts[0] if len(parts) == 1 else np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))


def _both(one: "Numbers", other: "Numbers") -> "Numbers":
    """Return the documents of the shorter list that the longer one has too."""
    return one[other.take(other.searchsorted(one), mode="clip") == one] if len(other) else other


def _rows(db: Engine, match: Match, asked: Sequence[str], limit: int, ids: Sequence[int] | None) -> list[Row]:
    some = [*match.some, None, None]
    return db.query(
        "engine.full_text.matching",
        every=match.every,
        some=some[0],
        other=some[1],
        places=match.places,
        ids=list(ids) if ids is not None else None,
        asked=list(asked),
        limit=limit,
    )

"""The documents that match an FTS5 expression: from memory if the words are known there, else from the database."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.engines.postgres.word_index import Held

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kernel.engines.postgres.connection import Connection

    Numbers = NDArray[np.int64]

Row = tuple[Any, ...]
Params = Mapping[str, Any]
_NO_LIMIT = 2**31
_CLAUSE = re.compile(r'(place|\{text grams\}) : \(((?:"(?:[^"]|"")*+"|[^"()])*+)\)')
PHRASE = re.compile(r'"((?:[^"]|"")*)"(\*?)|quipuplace(\d+)')


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


class Matching(NamedTuple):
    """Documents, the newest first, their sizes in words, and how often each holds each phrase."""

    docs: "Numbers"
    sizes: "Numbers"
    counts: "Numbers"


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

"""Which documents hold the words of a text, and how well: by their own frequencies in small places."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kernel.search.bm25 import bm25, packed
from kernel.search.evidence import PartitionSet, SearchCache, as_json, partitions_of
from kernel.search.query import (
    SMALL,
    RowQuery,
    Share,
    Term,
    candidate_queries,
    glued,
    grams,
    match,
    match_any,
    match_partition,
    place_word,
    present,
    query_grams,
    query_words,
)
from kernel.store.transaction import Tx

_WORDS = 2000
_MOST_PLACES = 64
_MOST_ROWS = 0.5


class Ranked(NamedTuple):
    """One document that holds words of the query: `rank` is its BM25, larger is better."""

    doc: int
    rank: float


class _Tallied(NamedTuple):
    doc: int
    tally: bytes


class _Text(NamedTuple):
    doc: int
    text: str
    grams: str


class _Count(NamedTuple):
    stem: str
    docs: int


def by_words(tx: Tx, text: str, places: PartitionSet | None, limit: int, *, comparable: bool = False) -> list[Ranked]:
    """The documents that hold the words of `text`, best BM25 first: of those that can win, where many hold them.

    In small places a word is worth what it is worth there, unless ranks shall be `comparable` between searches.
    """
    return _by_words(tx, _terms(tx, text), places, limit, comparable=comparable)


def by_words_each(tx: Tx, text: str, ids: Sequence[int], limit: int) -> list[Ranked]:
    """`by_words` of each place by itself."""
    terms = _terms(tx, text)
    known = _known(tx, terms, ids[:_MOST_PLACES])
    large = {place for place in ids if known[0].get(place_word(place), 0) > SMALL}
    found: list[Ranked] = []
    for places in partitions_of(tx, ids, large):
        found += _by_words(tx, terms, places, limit, known=known if ids[:_MOST_PLACES] == ids else None)
    return found


def _by_words(
    tx: Tx,
    terms: Sequence[Term],
    places: PartitionSet | None,
    limit: int,
    *,
    comparable: bool = False,
    known: tuple[dict[str, int], int] | None = None,
) -> list[Ranked]:
    if places is not None and places.few and not comparable:
        return _ranked(*_few(tx, terms, places), len(terms), places.held, None, limit)
    small, large = (places.small, places.large) if places else ((), ())
    frequency, total = known or _known(tx, terms, large[:_MOST_PLACES])
    held = present(terms, frequency)
    if not held:
        return []
    share, looked = _share(large, frequency, total)
    found = dict(_visit(tx, match_partition(held, small), ())) if small else {}
    if large or not places:
        found |= _visit_large(tx, candidate_queries(held, frequency, total, share, limit), looked)
    own = bool(small) and not large and not comparable
    counts = None if own else [frequency.get(term.stem, 0) for term in held]
    rows = places.held if own and places else total
    return _ranked([*found], [*found.values()], len(held), rows, counts, limit)


def by_words_among(tx: Tx, text: str, docs: Sequence[int], limit: int) -> list[Ranked]:
    """`by_words` of these documents alone; a word is worth what it is worth everywhere."""
    terms = _terms(tx, text)
    frequency, total = _known(tx, terms, ())
    held = present(terms, frequency)
    if not held or not docs:
        return []
    found = tx.all(
        "kernel.lexical.match_with_tf_of", _Tallied, query=match_partition(held, ()).expression, ids=as_json(docs)
    )
    counts = [frequency.get(term.stem, 0) for term in held]
    return _ranked([row.doc for row in found], [row.tally for row in found], len(held), total, counts, limit)


def every_by_words(tx: Tx, text: str, places: PartitionSet | None) -> list[Ranked]:
    """All documents that hold the words of `text`: those with a rare one, or with any where none has."""
    terms = _terms(tx, text)
    inside = None if places is None else [*places.small, *places.large]
    known, total = _known(tx, terms, inside or ())
    bound = inside is None or _bound(inside, known, total)
    looked = None if bound else inside
    found: list[Ranked] = []
    for query in (
        match(terms, known, total, inside if bound else None),
        match_any(terms, known, inside if bound else None),
    ):
        if query and not found and looked is None:
            found = tx.all("kernel.lexical.match_by_bm25", Ranked, query=query)
        elif query and not found:
            found = tx.all("kernel.lexical.match_by_bm25_in", Ranked, query=query, places=as_json(looked))
    return found


def coverage(tx: Tx, query: str, texts: Sequence[str]) -> list[float]:
    """For each text the part of the query's words that it holds, in [0, 1]; 0 for a query without words."""
    # A run of CJK characters counts by its pairs alone: as one word it would hardly ever be there.
    pairs = {term.stem for term in query_grams(query)}
    stems = pairs | {term.stem for term in _terms(tx, query) if not query_grams(term.surface)}
    shares: list[float] = []
    for text in texts:
        held = set(_stems(tx, text) + _stems(tx, grams(text)))
        found = sum(stem in held or (stem in pairs and _begins(stem, held)) for stem in stems)
        shares.append(found / len(stems) if stems else 0.0)
    return shares


def _few(tx: Tx, terms: Sequence[Term], places: PartitionSet) -> tuple[list[int], list[bytes]]:
    """The documents of few that hold any of the words, with their tallies, read instead of looked up."""
    rows = tx.all("kernel.lexical.texts", _Text, places=as_json(places.ids))
    held = [(_stems(tx, row.text), _stems(tx, row.grams)) for row in rows]
    mean = sum(len(one) + len(other) for one, other in held) / max(1, len(held))
    docs: list[int] = []
    tallies: list[bytes] = []
    for row, (one, other) in zip(rows, held, strict=True):
        stems = one + other
        counts = [_count(term, stems) for term in terms]
        if any(counts):
            docs.append(row.doc)
            tallies.append(packed(counts, len(stems), mean))
    return docs, tallies


def _count(term: Term, stems: Sequence[str]) -> int:
    return sum(stem.startswith(term.stem) for stem in stems) if term.prefix else stems.count(term.stem)


def _visit_large(tx: Tx, wanted: Iterable[RowQuery], places: Sequence[int]) -> dict[int, bytes]:
    """The rows of one expression after the other, until there are enough."""
    found: dict[int, bytes] = {}
    for sought in wanted:
        if len(found) < sought.until:
            found.update(_visit(tx, sought, places))
    return found


def _visit(tx: Tx, sought: RowQuery, places: Sequence[int]) -> list[_Tallied]:
    asked = {"query": sought.expression, "skip": sought.skip, "limit": sought.most}
    if places:
        return tx.all("kernel.lexical.match_with_tf_in", _Tallied, **asked, places=as_json(places))
    return tx.all("kernel.lexical.match_with_tf", _Tallied, **asked)


def _ranked(
    docs: Sequence[int], tallies: Sequence[bytes], words: int, rows: int, holding: Sequence[int] | None, limit: int
) -> list[Ranked]:
    ranks = bm25(tallies, words, rows, holding)
    best = sorted([(-rank, doc) for doc, rank in zip(docs, ranks, strict=True)])
    return [Ranked(doc, -rank) for rank, doc in best[:limit]]


def _share(places: Sequence[int], known: dict[str, int], total: int) -> tuple[Share, Sequence[int]]:
    """What an expression must know of the places, and those that the statement around it keeps to."""
    if not places:
        return Share(), ()
    if len(places) > _MOST_PLACES:
        return Share(), places
    part = min(1.0, sum(known.get(place_word(place), 0) for place in places) / max(1, total))
    return (Share(places, part), ()) if _bound(places, known, total) else (Share(), places)


def _bound(places: Sequence[int], known: dict[str, int], total: int) -> bool:
    """Whether the expression keeps to the places. A word for every place is one more to look up; where most rows are
    wanted, it is cheaper to look at the rows."""
    return (
        len(places) <= _MOST_PLACES and sum(known.get(place_word(place), 0) for place in places) <= total * _MOST_ROWS
    )


def _known(tx: Tx, terms: Sequence[Term], places: Sequence[int]) -> tuple[dict[str, int], int]:
    """How many documents hold each term and lie in each place, and the largest number of a document."""
    memory: SearchCache = tx.context.search_cache
    total = tx.one("kernel.index.last_doc_id", int) or 0
    stems = [term.stem for term in terms if not term.prefix] + [place_word(place) for place in places]

    def count(missing: list[str]) -> dict[str, int]:
        return dict(tx.all("kernel.lexical.frequencies", _Count, stems=as_json(missing)))

    return memory.frequencies(total, stems, count) if memory.can_cache(tx) else count(stems), total


def _terms(tx: Tx, text: str) -> list[Term]:
    text = text.replace("\0", " ")
    words = f"{text} {glued(text)}"
    return [*query_words(words, tx.tokenize(words)), *query_grams(text)][:_WORDS]


def _stems(tx: Tx, text: str) -> list[str]:
    return [token[2] for token in tx.tokenize(text.replace("\0", " "))] if text else []


def _begins(start: str, words: Iterable[str]) -> bool:
    return any(word.startswith(start) for word in words)

"""Lexical search: the documents that hold terms of a query, ranked by BM25."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import log1p
from typing import NamedTuple

from kernel.core.lazy_regex import regex
from kernel.search.bm25 import bm25
from kernel.search.cache import Frequencies, Reached, SearchCache
from kernel.search.documents import PartitionSet
from kernel.search.extra_terms import MARK, indexed_words, pair_terms, query_terms
from kernel.search.named_values import value_of
from kernel.search.query import (
    MAX_WORDS,
    STOP_WORDS,
    Near,
    PartitionFilter,
    RowQuery,
    Term,
    abbreviated,
    acronyms,
    candidate_queries,
    expansion,
    indexed_terms,
    match,
    match_any,
    misspelt,
    near_words,
    partition_docs,
    partition_query,
    partition_term,
    respelled,
)
from kernel.search.word_forms import as_written, is_stem, query_forms
from kernel.store.transaction import Tx

# Documents up to which FTS5 ranks: it counts every row of each term, but without the interpreter's lock. At 24,000 that
# costs as much as a callback for each row, and eight callers get 1.3 times the searches.
_FTS5_RANKED_ROWS = 30_000
_MOST_SCANNED = 2_000  # documents read for a compound, 5 to 7 us each
_MAX_TERMS_READ = 2000  # distinct terms to look up, of which the 256 rarest are used; not measured
_MAX_PARTITION_TERMS = 64  # partitions an expression may name; beyond, a join filters; not measured
_LAST_CHARACTER = "\U0010ffff"
_WORD = regex(r"[^\W_]+")
_PARTITION_TERM_MAX_SHARE = 0.5  # of all documents; partitions that hold more are filtered by a join; not measured


Ranks = dict[int, float]
"""The BM25 of documents, larger is better; the best first."""


class _Row(NamedTuple):
    doc: int
    tf: bytes


class _Frequency(NamedTuple):
    stem: str
    docs: int


def bm25_search(
    tx: Tx, text: str, partitions: PartitionSet | None, limit: int, reached: Reached | None = None
) -> Ranks:
    """At most `limit` documents that hold terms of `text`, best first; in small partitions the document frequencies are
    those of the partitions.
    """
    return _search(tx, _terms(tx, text), partitions, limit, reached)


def bm25_search_of(tx: Tx, text: str, docs: Sequence[int], limit: int) -> Ranks:
    """Return `bm25_search` among these documents, with the document frequencies of the whole index."""
    terms = _terms(tx, text)
    frequency, total = _frequencies(tx, terms, ())
    query_terms = indexed_terms(_respelled(tx, terms, frequency), frequency)
    if not query_terms or not docs:
        return {}
    expression = partition_query(query_terms, ()).expression
    rows = tx.all("kernel.lexical.match_with_tf_of", _Row, query=expression, ids=docs)
    counts = [frequency.get(term.stem, 0) for term in query_terms]
    return _ranked([row.doc for row in rows], [row.tf for row in rows], len(query_terms), total, counts, limit)


def bm25_search_all(tx: Tx, text: str, partitions: PartitionSet | None) -> Ranks:
    """Return every document with a rare term of `text`, or with any term if no document has a rare term."""
    terms = _terms(tx, text)
    ids = None if partitions is None else [*partitions.small, *partitions.large]
    frequency, total = _frequencies(tx, terms, ids or ())
    terms = _respelled(tx, terms, frequency)
    in_expression = ids is None or _filters_by_term(ids, frequency, total)
    named_ids = ids if in_expression else None
    matches: Ranks = {}
    comparing = _has_dropped(tx) or not in_expression
    for query in (match(terms, frequency, total, named_ids), match_any(terms, frequency, named_ids)):
        if query and not matches and not comparing:
            tx.all("kernel.lexical.match_by_bm25", matches.__setitem__, query=query)
        elif query and not matches:
            tx.all("kernel.lexical.match_by_bm25_in", matches.__setitem__, query=query, partitions=ids)
    return matches


def holding_parts(tx: Tx, text: str, partitions: Sequence[int] | None) -> list[int]:
    """Return the newest short documents with a compound that holds a query of one word."""
    value = value_of(text)
    if value is None or not value.parts or tx.context.search_cache.last_ids(tx).docs > _MOST_SCANNED:
        return []
    knows, parts = knows_word(tx), [*value.words, *value.parts]

    def held(doc: int, body: str) -> int:
        return doc if value.share(body, knows) else 0

    return [*filter(None, tx.all("kernel.lexical.holding_parts", held, parts=parts, partitions=partitions))]


def instructions(tx: Tx, partitions: PartitionSet | None, most: int, reached: Reached | None) -> list[int]:
    """Return at most `most` standing instructions."""
    term = [Term(MARK, MARK)]
    return [*_search(tx, term, partitions, most, reached)] if _frequencies(tx, term, ()).docs.get(MARK) else []


def knows_word(tx: Tx) -> Callable[[str], bool]:
    """Return a test for words of English; none is before the model is loaded."""
    embedder = tx.context.embedder
    return embedder.knows if embedder is not None and embedder.ready else str.isspace


def information(tx: Tx, text: str) -> float:
    """Return the BM25 of a text of mean length that holds each term of `text` once; terms that no text holds count
    most.
    """
    terms = _terms(tx, text)
    frequency, total = _frequencies(tx, terms, ())
    return sum(_inverse_frequency(total, frequency.get(term.stem, 0)) for term in terms)


def content_words(tx: Tx, text: str) -> dict[str, str]:
    """Return the stems of a short text without stop words, each with its word in small letters; without parts of words
    and words beside the text.
    """
    lower_text, words = text.lower(), dict[str, str]()
    if text.isascii():
        for begin, end, stem in tx.tokenize(lower_text.replace("\0", " ")):
            if stem not in words:
                words[stem] = lower_text[begin:end]
        foreign = query_forms(text).stop_words
        stop_words = STOP_WORDS | foreign if foreign else STOP_WORDS
        names = acronyms(text)
        return {stem: word for stem, word in words.items() if word in names or word not in stop_words} or words
    last_text, terms = tx.context.search_cache.last_query
    if last_text != text or len(terms) == _MAX_TERMS_READ:
        terms = query_terms(text, tx.tokenize, spelled_otherwise=False)
    words = {term.stem: as_written(term.surface).lower() for term in terms if not (term.derived or is_stem(term.stem))}
    own = {*_WORD.findall(lower_text)}
    return {stem: word for stem, word in words.items() if word in own or (not word.isascii() and word in lower_text)}


def word_starts(tx: Tx, text: str) -> dict[str, float]:
    """Return the words of `text`, each as far as it and its stem agree, which any form of it contains, with their BM25
    in a text of mean length.
    """
    terms = _terms(tx, text)
    frequency, total = _frequencies(tx, terms, ())
    starts: dict[str, float] = {}
    for term in terms:
        surface = term.surface.lower()
        start = as_written(_shared_start(term.stem, surface) or surface)
        starts.setdefault(start, _inverse_frequency(total, frequency.get(term.stem, 0)))
    return starts


def respelled_query(tx: Tx, text: str) -> str:
    """Return a query that was searched for, with words of the index for those that look misspelt."""
    cache: SearchCache = tx.context.search_cache
    terms = _terms(tx, text)
    reader, last_terms, near = cache.last_near
    if reader is not tx or last_terms is not terms:
        near = _near(tx, terms, _frequencies(tx, terms, ()).docs)
    return respelled(text, near)


def _shared_start(first: str, second: str) -> str:
    pairs = enumerate(zip(first, second, strict=False))
    return first[: next((at for at, (letter, same) in pairs if letter != same), min(len(first), len(second)))]


def _inverse_frequency(total: int, count: int) -> float:
    return log1p((total - min(total, count) + 0.5) / (min(total, count) + 0.5))


def coverage(tx: Tx, query: str, texts: Sequence[str]) -> list[float]:
    """For each text the share of the query's terms that it holds, in [0, 1]; 0 for a query without terms."""
    # A run without blanks counts by its pairs only: as one word it would hardly ever be in a text.
    pairs = {term.stem for term in pair_terms(query)}
    stems = pairs | {term.stem for term in _terms(tx, query) if not (term.derived or pair_terms(term.surface))}
    shares: list[float] = []
    for text in texts:
        text_stems = set(_stems(tx, text) + _stems(tx, indexed_words(text)))
        prefixes = {stem for stem in pairs if any(word.startswith(stem) for word in text_stems)}
        shares.append(len(stems & (text_stems | prefixes)) / max(len(stems), 1))
    return shares


def _search(
    tx: Tx,
    terms: list[Term],
    partitions: PartitionSet | None,
    limit: int,
    reached: Reached | None,
) -> Ranks:
    small, large = (partitions.small, partitions.large) if partitions else ((), ())
    flags = reached.flags if reached else None
    frequency, total = _frequencies(tx, terms, large[:_MAX_PARTITION_TERMS])
    searchable = indexed_terms(_respelled(tx, terms, frequency), frequency)
    if not searchable:
        return {}
    within, joined_ids = _partition_filter(large, frequency, total)
    if reached:
        within = within._replace(share=min(within.share, reached.docs / max(1, total)))
    if total <= _FTS5_RANKED_ROWS and not small and not joined_ids and not _has_dropped(tx):
        return _ranked_by_fts5(tx, candidate_queries(searchable, frequency, total, within, limit), limit, flags)
    rows = dict(_match_rows(tx, partition_query(searchable, small), (), flags)) if small else {}
    if large or not partitions:
        rows |= _match_until(tx, candidate_queries(searchable, frequency, total, within, limit), joined_ids, flags)
    local = bool(small) and not large
    counts = None if local else [frequency.get(term.stem, 0) for term in searchable]
    docs = partitions.docs if local and partitions else total
    return _ranked([*rows], [*rows.values()], len(searchable), docs, counts, limit)


def _ranked_by_fts5(tx: Tx, queries: Iterable[RowQuery], limit: int, flags: bytes | None) -> Ranks:
    ranks: Ranks = {}
    is_in_order = True  # as the rows of one statement are
    for query in queries:
        if len(ranks) < query.until:
            for expression in query.ranked:  # a later one ranks its rows by more terms
                is_in_order = not ranks
                put = ranks.__setitem__  # takes a row faster than a record does
                bounds = {"newest": query.limit, "best": limit, "flags": flags}
                tx.all("kernel.lexical.newest_by_bm25", put, query=expression, **bounds)
    return ranks if is_in_order else _best(ranks, limit)


def _match_until(
    tx: Tx, queries: Iterable[RowQuery], partitions: Sequence[int], flags: bytes | None
) -> dict[int, bytes]:
    rows: dict[int, bytes] = {}
    for query in queries:
        if len(rows) < query.until:
            rows.update(_match_rows(tx, query, partitions, flags))
    return rows


def _match_rows(tx: Tx, query: RowQuery, partitions: Sequence[int], flags: bytes | None = None) -> list[_Row]:
    params = {"query": query.expression, "skip": query.skip, "limit": query.limit, "flags": flags}
    if partitions or _has_dropped(tx):
        with tx.held_to(None if flags else tx.reach):  # flags say what the store would ask of each
            return tx.all("kernel.lexical.match_with_tf_in", _Row, **params, partitions=partitions or None)
    return tx.all("kernel.lexical.match_with_tf", _Row, **params)


def _has_dropped(tx: Tx) -> bool:
    """Return whether rows are to be compared with the documents, since some are of deleted documents."""
    cache: SearchCache = tx.context.search_cache
    return bool(cache.last_ids(tx).has_dropped)


def _ranked(
    docs: Sequence[int], rows: Sequence[bytes], terms: int, total: int, counts: Sequence[int] | None, limit: int
) -> Ranks:
    return _best(dict(zip(docs, bm25(rows, terms, total, counts), strict=True)), limit)


def _best(ranks: Ranks, limit: int) -> Ranks:
    docs = sorted(sorted(ranks), key=ranks.__getitem__, reverse=True)[:limit]  # keeps the order of equal ranks
    return {doc: ranks[doc] for doc in docs}


def _partition_filter(
    partitions: Sequence[int], frequency: dict[str, int], total: int
) -> tuple[PartitionFilter, Sequence[int]]:
    """Return the filter inside the expressions, and the partitions that the statement around them joins instead."""
    if not partitions:
        return PartitionFilter(), ()
    if not _filters_by_term(partitions, frequency, total):
        return PartitionFilter(), partitions
    share = min(1.0, partition_docs(partitions, frequency) / max(1, total))
    return PartitionFilter(partitions, share), ()


def _filters_by_term(partitions: Sequence[int], frequency: dict[str, int], total: int) -> bool:
    # Each partition term is one more posting list to read; if most rows match, joining the rows costs less.
    return (
        len(partitions) <= _MAX_PARTITION_TERMS
        and partition_docs(partitions, frequency) <= total * _PARTITION_TERM_MAX_SHARE
    )


def _frequencies(tx: Tx, terms: Sequence[Term], partitions: Sequence[int]) -> Frequencies:
    cache: SearchCache = tx.context.search_cache
    reader, last_terms, last_frequencies = cache.last_frequencies
    if reader is tx and last_terms is terms and not partitions and tx.readonly:
        return last_frequencies
    total = cache.last_ids(tx).doc
    stems = [term.stem for term in terms if not term.prefix] + [partition_term(partition) for partition in partitions]

    count = partial(_count, tx)
    docs = cache.document_frequencies(total, stems, count) if cache.can_cache(tx) else count(stems)
    frequencies = Frequencies(docs, total)
    cache.last_frequencies = tx, terms, frequencies  # of all threads: only the local value is certain to be of this one
    return frequencies


def _count(tx: Tx, stems: list[str]) -> dict[str, int]:
    return dict(tx.all("kernel.lexical.document_frequencies", _Frequency, stems=stems))


def _count_alike(tx: Tx, total: int, stems: list[str]) -> dict[str, int]:
    """Return `_count` of many stems of which most begin alike."""
    if not stems:
        return {}
    # A look-up costs as much as reading some 20 words of a range (12 us; .6 us a word). The more words a store has,
    # the more letters the words of the range share.
    letters = max(1, len(str(total)) - 3)
    begin = Counter(stem[:letters] for stem in stems).most_common(1)[0][0]
    rows = tx.all(
        "kernel.lexical.frequencies_alike", _Frequency, stems=stems, first=begin, last=begin + _LAST_CHARACTER
    )
    wanted_stems = frozenset(stems)
    return {stem: docs for stem, docs in rows if stem in wanted_stems}


def _respelled(tx: Tx, terms: list[Term], frequency: dict[str, int]) -> list[Term]:
    """Return the terms with words of the index for those that look misspelt, which are counted in `frequency` too."""
    near = _near(tx, terms, frequency)
    tx.context.search_cache.last_near = tx, terms, near
    if not near:
        return terms
    new_words = {word.stem: word for words in near.values() for word in words if not frequency.get(word.stem)}
    frequency |= {stem: word.docs for stem, word in new_words.items()}
    return [
        *(term for term in terms if term.surface not in near),
        *(Term(word.stem, word.surface) for word in new_words.values()),
    ]


def _near(tx: Tx, terms: Sequence[Term], frequency: dict[str, int]) -> Mapping[str, Sequence[Near]]:
    """For each word that looks misspelt the words of the index that are near."""
    if tx.is_limited:
        return {}  # the words of the index are those of every place
    if len(terms) == 3 and terms[2].derived and (docs := frequency.get(terms[2].stem)):  # two words for one
        return {f"{terms[0].surface} {terms[1].surface}": [Near(terms[2].stem, terms[2].surface, docs)]}
    if all(map(frequency.get, [term.stem for term in terms])):
        return {}
    wrong = [term.surface for term in misspelt(terms, frequency, knows_word(tx))[:MAX_WORDS]]
    cache: SearchCache = tx.context.search_cache
    short = abbreviated(terms, frequency, cache.last_query[0])
    words = list(dict.fromkeys((*wrong, *short)))
    total = cache.last_ids(tx).doc
    stems = partial(_stems, tx)

    def find(word: str) -> Sequence[Near]:
        near = expansion(word, stems, partial(_count, tx)) if word.lower() in short else []
        return near or (near_words(word, stems, partial(_count_alike, tx, total)) if word in wrong else [])

    if not cache.can_cache(tx):
        return {word: find(word) for word in words}
    return cache.near_words(total, words, find)


def _terms(tx: Tx, text: str) -> list[Term]:
    cache: SearchCache = tx.context.search_cache
    last_text, terms = cache.last_query
    if last_text != text:
        terms = query_terms(text, tx.tokenize)[:_MAX_TERMS_READ]
        cache.last_query = text, terms
    return terms


def _stems(tx: Tx, text: str) -> list[str]:
    return [token[2] for token in tx.tokenize(text.replace("\0", " "))] if text else []

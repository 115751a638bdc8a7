"""The search index over every dialect: put and drop documents, and search them for evidence."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from datetime import date
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kernel.search import dropped, quarantine
from kernel.search.cache import Reached, SearchCache
from kernel.search.documents import (
    Document,
    PartitionSet,
    Within,
    ask_partitions,
    count,
    doc_ids,
    documents,
    has_at_least,
    in_folder,
    last_doc_id,
    matching_partitions,
    newest,
    partition_set,
    partitions_of,
    prefilter,
    reached,
    seen_among,
    with_id,
)
from kernel.search.equivalence import (
    are_about_others,
    are_denying,
    begin_apart,
    begins_alike,
    ends_alike,
    has_word_like,
    is_common,
    is_negated,
    says_the_same,
    share_day,
    share_half,
)
from kernel.search.extra_terms import character_pairs, indexed_words, own_words
from kernel.search.fusion import (
    Candidates,
    Hit,
    Parts,
    Reading,
    Scored,
    Verdict,
    Weights,
    candidates,
    fuse,
    least,
    verdict,
)
from kernel.search.lexical import (
    bm25_search,
    bm25_search_all,
    bm25_search_of,
    content_words,
    coverage,
    holding_parts,
    information,
    instructions,
    respelled_query,
)
from kernel.search.named_values import NamedValues, marked_names, named_values, names_in, periods
from kernel.search.quarantine import Suspect, is_quarantining
from kernel.search.query import asks_for_work, quote
from kernel.search.rerank import Passing, Ranking, rerank
from kernel.search.subjects import Subjects, may_change, seems_to_contradict
from kernel.search.vectors import (
    ask_vectors,
    delete_vectors,
    has_model,
    insert_vectors,
    l2_distance,
    model_id,
    vector_search,
)
from kernel.security.rules.injection import matched_rule
from kernel.store.transaction import Tx

__all__ = [
    "CANDIDATES",
    "Candidates",
    "Document",
    "Hit",
    "NamedValues",
    "Origin",
    "Parts",
    "Passing",
    "Ranking",
    "Scored",
    "SearchCache",
    "Verdict",
    "Weights",
    "Within",
    "are_about_others",
    "are_denying",
    "begin_apart",
    "begins_alike",
    "character_pairs",
    "clear",
    "containing",
    "content_words",
    "count",
    "coverage",
    "delete_vectors",
    "doc_ids",
    "documents",
    "drop",
    "drop_scope",
    "ends_alike",
    "find",
    "fuse",
    "has_model",
    "has_word_like",
    "in_folder",
    "indexed_words",
    "insert_vectors",
    "is_common",
    "is_negated",
    "is_quarantining",
    "last_doc_id",
    "least",
    "marked_names",
    "matched_rule",
    "model_id",
    "named_values",
    "names_in",
    "near_subjects",
    "newest",
    "partitions_of",
    "prefilter",
    "put",
    "rerank",
    "says_the_same",
    "search",
    "seems_to_contradict",
    "set_provenance",
    "share_day",
    "share_half",
    "verdict",
    "with_id",
]

_MOST_PERIODS = 2  # that a question names
_BESIDE = 50  # documents of these, and instructions for a request, that are candidates by meaning
CANDIDATES = 100  # of each signal, before fusion; recall@100 of the union is .93 on turns of conversations
_OVER = 4  # times as many for a key that is held to places, if some of them are elsewhere


class _Evidence(NamedTuple):
    """BM25 and cosine by document, the query as it was searched for, how many documents were searched, those of days
    that the query names, and the instructions for a request.
    """

    ranks: dict[int, float]
    near: dict[int, float]
    text: str
    size: int
    dated: Sequence[int]
    instructions: Sequence[int]

    @property
    def docs(self) -> set[int]:
        return {*self.ranks, *self.near}

    def only(self, docs: set[int]) -> "_Evidence":
        """Return the evidence for these documents."""
        ranks, near = (
            {doc: score for doc, score in scores.items() if doc in docs} for scores in (self.ranks, self.near)
        )
        return self._replace(ranks=ranks, near=near)


class _Put(Struct, frozen=True, gc=False):
    space: str
    key: str
    scope: str
    text: str
    extra_text: str
    dialect: str
    tool: str
    actor: str
    created_at: str  # empty for the time at which the document was first put
    at: str
    rule: str  # of prompt injections that the text matches, or empty


class _Drop(NamedTuple):
    space: str
    key: str


class _Old(NamedTuple):
    id: int
    space: str
    key: str
    created_at: str
    updated_at: str


class Origin(NamedTuple):
    """The (dialect, tool, actor) that wrote a document, and when it was created and last changed (ISO 8601 UTC with
    milliseconds and Z).
    """

    writer: tuple[str, str, str]
    created_at: str
    updated_at: str


class Key(NamedTuple):
    doc: int
    space: str
    key: str


MIN_PART_LENGTH = 3  # characters: the length of a term of FTS5's trigram tokenizer
_MAX_TRIGRAMS = 32  # of a query; more hardly leave fewer documents to compare; not measured


_DAY_CHARS = len("2026-01-31")


DERIVED = (matched_rule, own_words)  # each takes as long as the transaction with a long text


def put(
    tx: Tx, space: str, key: str, text: str, *, scope: str = "", words: str = "", origin: Origin | None = None
) -> None:
    """Adds or replaces the document `(space, key)`.

    `words`, such as tags, are indexed for lexical search and do not affect the vector. `origin` is that of a text which
    was not written by the current call, or not now.
    """
    writer, created_at, at = (*origin,) if origin else (tx.writer, "", tx.now)
    extra_text = indexed_words(text, words, tx.derived(own_words, text))
    rule = "" if tx.context.injection_mode == quarantine.OFF else tx.derived(matched_rule, text)
    dialect, tool, actor = writer
    item = _Put(space, key, scope, text, extra_text, dialect, tool, actor, created_at, at, rule)
    tx.defer(_flush, item, len(text) + len(item.extra_text))


def set_words(tx: Tx, rows: Sequence[tuple[int, str]]) -> None:
    """Replace the words of documents, which `indexed_words` makes; the texts, the authors and the times stay."""
    ids = [doc for doc, _ in rows]
    if ids:
        tx.context.search_cache.uncommitted = tx
        tx.run("kernel.index.fts_delete", ids=ids)
        tx.run("kernel.index.set_words", rows=rows)
        tx.run("kernel.index.fts_insert", ids=ids)


def near_subjects(
    tx: Tx, space: str, texts: Iterable[tuple[str, str]], *, are_new: bool, marks: Set[str]
) -> list[tuple[list[str], bool]]:
    """Return for each key and its new text the keys of short statements of a space that may be about the same, of which
    some may be gone, and whether the text may be of a change, if there are any. The keys had no texts before if they
    `are_new`. `marks` are words of a change, which has other words.
    """
    cache: SearchCache = tx.context.search_cache
    subjects = cache.subjects.get(space) or cache.subjects.setdefault(space, Subjects())
    subjects.follow(tx, space)
    near = [(subjects.near(text, key, is_new=are_new, marks=marks), text) for key, text in texts]
    return [(keys, bool(keys) and may_change(text, marks)) for keys, text in near]


def set_provenance(
    tx: Tx, space: str, key: str, origin: tuple[str, str, str], created_at: str, updated_at: str
) -> None:
    """Restores (dialect, tool, actor) and timestamps of a document, for undo."""
    tx.flush_deferred()
    dialect, tool, actor = origin
    for row in tx.all("kernel.index.by_keys", _Old, keys=[(space, key)]):
        add(tx, [(space, row.updated_at)], -1)
        add(tx, [(space, updated_at)])
    tx.run(
        "kernel.index.set_provenance",
        space=space,
        key=key,
        dialect=dialect,
        tool=tool,
        actor=actor,
        created_at=created_at,
        updated_at=updated_at,
    )


def drop(tx: Tx, space: str, key: str) -> None:
    tx.defer(_flush, _Drop(space, key))


def drop_scope(tx: Tx, space: str, scope: str) -> None:
    tx.flush_deferred()
    _empty(tx, matching_partitions(tx, [(space, scope)]))


def clear(tx: Tx, dialect: str) -> None:
    """Removes all documents of a dialect: of all spaces named as it is up to the first colon."""
    tx.flush_deferred()
    _empty(tx, matching_partitions(tx, partitions_of(tx, None, [dialect], None)))


def search(
    tx: Tx,
    text: str,
    *,
    within: Within | None = None,
    limit: int = CANDIDATES,
    lexical: bool = True,
    semantic: bool = True,
    all_matches: bool = False,
    per_partition: bool = False,
) -> list[Hit]:
    """Return the union of the `limit` best documents by BM25 and the `limit` nearest by vector, in no particular order.

    With `all_matches`, every lexical match is returned, with a similarity for the best `limit` only; with
    `per_partition`, the `limit` best lexical matches of each pair of `within`.
    """
    ids = _partition_ids(tx, text, within)
    if ids == []:
        return []
    by_partition = lexical and per_partition and not all_matches
    partitions = None if ids is None or (by_partition and not semantic) else partition_set(tx, ids)
    ranks = dict[int, float]()
    if lexical and all_matches:
        ranks = bm25_search_all(tx, text, partitions)
    elif by_partition and ids is not None:
        for partition in ids:
            ranks |= bm25_search(tx, text, partition_set(tx, [partition]), limit)
    elif lexical:
        ranks = bm25_search(tx, text, partitions, limit)
    near = vector_search(tx, text, partitions, limit, [*ranks][:limit]) if semantic else {}
    return _hits(tx, ranks, near)


def find(
    tx: Tx,
    text: str,
    *,
    within: Within | None = None,
    limit: int = CANDIDATES,
    lexical: bool = True,
    semantic: bool = True,
    docs: Sequence[int] | None = None,
) -> Candidates:
    """Return the union of the `limit` best documents by BM25 and the `limit` nearest by vector, for `rerank`.

    With `docs`, these documents are searched exhaustively, and `within` is ignored.
    """
    ids = _partition_ids(tx, text, within if docs is None else None)
    gather = partial(_gather, tx, text, within, ids, docs, lexical=lexical, semantic=semantic)
    evidence = gather(limit)
    if tx.is_limited:
        evidence = _in_reach(tx, evidence, gather, limit)
    ranks, near, respelling, size = evidence[:4]
    # The share of words is needed for documents without a vector.
    weight = 0.0 if ranks.keys() <= near.keys() else information(tx, respelling)
    return candidates(
        ranks,
        near,
        Reading(
            respelling,
            weight,
            documents=size,
            by_words=lexical,
            dated=evidence.dated,
            instructions=evidence.instructions,
        ),
    )


def _in_reach(tx: Tx, evidence: _Evidence, gather: Callable[[int], _Evidence], limit: int) -> _Evidence:
    """Return the evidence for documents that a key sees which is held to places, of more documents if the search had
    no flags of these.
    """
    seen_docs = seen_among(tx, evidence.docs)
    if len(seen_docs) < len(evidence.docs) and limit <= CANDIDATES and not reached(tx):
        evidence = gather(_OVER * CANDIDATES)
        seen_docs = seen_among(tx, evidence.docs)
    return evidence.only(seen_docs)


def _gather(
    tx: Tx,
    text: str,
    within: Within | None,
    ids: Sequence[int] | None,
    docs: Sequence[int] | None,
    limit: int,
    *,
    lexical: bool,
    semantic: bool,
) -> _Evidence:
    """Return the evidence of both signals in these partitions."""
    ranks, near, respelling, size = dict[int, float](), dict[int, float](), text, len(docs or ())
    if ids == [] or docs == []:
        return _Evidence(ranks, near, respelling, size, [], [])
    partitions = None if ids is None else partition_set(tx, ids)
    of_key = reached(tx) if docs is None else None
    if docs is None:
        few = partitions and not partitions.large
        size = partitions.docs if partitions and few else tx.context.search_cache.last_ids(tx).docs
        size = min(size, of_key.docs) if of_key else size
    feed = ask_vectors(tx) if semantic else None
    if lexical and docs is None:
        ranks = bm25_search(tx, text, partitions, limit, of_key)
    elif lexical:
        ranks = bm25_search_of(tx, text, docs or (), limit)
    respelling = respelled_query(tx, text) if ranks else text
    if lexical and docs is None and (not ranks or respelling != text) and (parts := holding_parts(tx, text, ids)):
        ranks, respelling = ranks | dict.fromkeys(parts, min(ranks.values(), default=1.0)), text
    dated_docs, standing = _beside(tx, text, within, partitions, of_key) if docs is None else ([], [])
    if semantic:
        near = vector_search(tx, respelling, partitions, limit, [*ranks], docs, feed, of_key)
        for docs_beside in filter(None, (dated_docs, standing)):
            near = vector_search(tx, respelling, partitions, _BESIDE, [], docs_beside) | near
    return _Evidence(ranks, near, respelling, size, dated_docs, standing)


def _beside(
    tx: Tx, text: str, within: Within | None, partitions: PartitionSet | None, of_key: Reached | None
) -> tuple[list[int], list[int]]:
    standing = instructions(tx, partitions, _BESIDE, of_key) if asks_for_work(text) else []
    return _documents_of_periods(tx, text, within), standing


def _documents_of_periods(tx: Tx, text: str, within: Within | None) -> list[int]:
    """Return the documents last changed in the periods that a question names; none of a period that holds many."""
    spans = periods(text, date.fromisoformat(tx.now[:10]))[:_MOST_PERIODS]
    bounds = ((first.isoformat(), end.isoformat()) for first, end in spans)
    return [doc for after, before in bounds for doc in prefilter(tx, None, after, before, within) or ()]


def _partition_ids(tx: Tx, text: str, within: Within | None) -> list[int] | None:
    """Return the partitions to search, None for all; none for a text without words."""
    tx.flush_deferred()
    if not text.strip():
        return []
    if within is None and tx.is_limited and not reached(tx):
        within = partitions_of(tx, None, None, None)
    return None if within is None else matching_partitions(tx, within)


def _hits(tx: Tx, ranks: dict[int, float], cosines: dict[int, float]) -> list[Hit]:
    rows = tx.all("kernel.index.keys_of", Key, ids=[*cosines, *(doc for doc in ranks if doc not in cosines)])
    return [
        Hit(
            row.doc,
            row.space,
            row.key,
            ranks.get(row.doc),
            None if (cosine := cosines.get(row.doc)) is None else l2_distance(cosine),
            cosine,
        )
        for row in rows
    ]


def _flush(tx: Tx, items: list[_Put | _Drop]) -> Iterator[None]:
    last: dict[tuple[str, str], _Put | _Drop] = {}
    dropped_keys: set[tuple[str, str]] = set()
    for item in items:
        key = (item.space, item.key)
        last[key] = item
        if isinstance(item, _Drop):
            dropped_keys.add(key)
    puts = [item for item in last.values() if isinstance(item, _Put)]
    old = tx.ask("kernel.index.by_keys", _Old, keys=list(last))
    places = ask_partitions(tx, {(put.space, put.scope) for put in puts}) if puts else dict[tuple[str, str], int]
    last_ids = tx.ask("kernel.documents.last_id", int) if puts else list[int]
    yield
    rows = old()
    dropped_ids = [row.id for row in rows if isinstance(last[row.space, row.key], _Drop)]
    if len(dropped_ids) >= dropped.LEAST and dropped.can_drop(tx):
        dropped.drop(tx, dropped_ids)
        rows = [row for row in rows if not isinstance(last[row.space, row.key], _Drop)]
    origins = _delete(tx, rows)
    for key in dropped_keys:
        origins.pop(key, None)  # a put after a drop is a new document
    if puts:
        _insert(tx, puts, origins, places(), next(iter(last_ids()), 0))


def _empty(tx: Tx, partitions: Sequence[int]) -> None:
    if dropped.can_drop(tx) and has_at_least(tx, partitions, dropped.LEAST):
        dropped.drop_partitions(tx, partitions)
    else:
        _delete(tx, tx.all("kernel.index.in_partitions", _Old, partitions=partitions))


def _delete(tx: Tx, rows: Sequence[_Old]) -> dict[tuple[str, str], tuple[int, str]]:
    """Return by space and key the id of each document, and with it its neighbours, and its creation time: both stay
    when it is put again.
    """
    if rows:
        ids = [row.id for row in rows]
        tx.send("kernel.index.fts_delete", ids=ids)
        tx.send("kernel.index.parts_delete", ids=ids)
        delete_vectors(tx, ids)
        quarantine.unflag(tx, ids)
        tx.send("kernel.index.delete_docs", ids=ids)
        add(tx, ((row.space, row.updated_at) for row in rows), -1)
    return {(row.space, row.key): (row.id, row.created_at) for row in rows}


def _insert(
    tx: Tx,
    puts: Sequence[_Put],
    origins: dict[tuple[str, str], tuple[int, str]],
    partitions: dict[tuple[str, str], int],
    last_id: int,
) -> None:
    tx.context.search_cache.uncommitted = tx
    new_ids = itertools.count(last_id + 1)
    rows: list[tuple[int, str, str, int, str, str, str, str, str, str, str]] = []
    for put in puts:
        doc, created_at = origins.get((put.space, put.key)) or (next(new_ids), put.at)
        head = (doc, put.space, put.key, partitions[put.space, put.scope], put.text, put.extra_text)
        rows.append((*head, put.dialect, put.tool, put.actor, put.created_at or created_at, put.at))
    ids = [row[0] for row in rows]
    tx.send("kernel.index.insert_docs", rows=rows)
    add(tx, ((put.space, put.at) for put in puts))
    tx.send("kernel.index.fts_insert", ids=ids)
    tx.send("kernel.index.parts_insert", ids=ids)
    insert_vectors(tx, [(row[0], row[4]) for row in rows])
    suspects = [(put, row[0]) for put, row in zip(puts, rows, strict=True) if put.rule]
    if suspects:
        quarantine.flag(tx, [(Suspect(doc, put.space, put.key, put.text), put.rule) for put, doc in suspects])


def containing(tx: Tx, parts: Sequence[str], within: Within) -> list[str]:
    """Return the keys of the documents that hold every part, in any case; none if no part has MIN_PART_LENGTH
    characters.

    Only documents of the spaces of `doc_part` are found.
    """
    tx.flush_deferred()
    expression = " AND ".join(map(quote, _trigrams(parts)))
    partitions = matching_partitions(tx, within)
    if not expression or not partitions:
        return []
    folded_parts = [part.casefold() for part in parts]

    def held(key: str, text: str) -> str | None:
        text = text.casefold()
        return key if all(part in text for part in folded_parts) else None

    keys = tx.all("kernel.index.match_trigrams", held, query=expression, partitions=partitions)
    return [key for key in keys if key is not None]


def _trigrams(parts: Iterable[str]) -> list[str]:
    """Return trigrams of the parts, the longest parts first; FTS5 reads an expression up to its first NUL."""
    trigrams: dict[str, None] = {}
    for part in sorted(parts, key=len, reverse=True):
        for at in range(len(part) - MIN_PART_LENGTH + 1):
            if "\0" not in part[at : at + MIN_PART_LENGTH]:
                trigrams[part[at : at + MIN_PART_LENGTH]] = None
            if len(trigrams) == _MAX_TRIGRAMS:
                return [*trigrams]
    return [*trigrams]


def add(tx: Tx, documents: Iterable[tuple[str, str]], sign: int = 1) -> None:
    """Counts documents, given by space and time of the last change; with -1 they are taken away."""
    counts = Counter((space, at[:_DAY_CHARS]) for space, at in documents)
    if counts:
        tx.send("kernel.index.add_days", rows=[(*key, sign * count) for key, count in counts.items()])


def count_mismatches(tx: Tx) -> int:
    return tx.one("kernel.index.differing_days", int) or 0


def total(tx: Tx) -> int:
    """Return the number of documents."""
    return tx.one("kernel.index.total_of_days", int) or 0


def rebuild(tx: Tx) -> None:
    tx.run("kernel.index.clear_days")
    tx.run("kernel.index.rebuild_days")


def ranked(
    tx: Tx,
    text: str,
    *,
    within: Within,
    limit: int,
    lexical: bool = True,
    semantic: bool = True,
    weights: Weights | None = None,
    whole: bool = False,
) -> list[Scored]:
    """Return the `limit` best documents by all evidence, best first, with their space and key; `whole`, with all
    candidates.

    Without `weights` the usual ones; of words or meaning alone only that signal counts.
    """
    usual = Weights() if lexical and semantic else Weights(lexical, semantic, 0, 0)
    matches = find(tx, text, within=within, limit=max(CANDIDATES, limit), lexical=lexical, semantic=semantic)
    ranking = rerank(tx, text, matches, weights or usual).fused
    return _with_keys(tx, ranking.scored(len(ranking.scores) if whole else limit))


def _with_keys(tx: Tx, hits: Sequence[Scored]) -> list[Scored]:
    """Return the same with the space and the key of each document."""
    keys = {row.doc: row for row in tx.all("kernel.index.keys_of", Key, ids=[hit.hit.doc for hit in hits])}
    pairs = [(hit, keys[hit.hit.doc]) for hit in hits if hit.hit.doc in keys]
    return [replace(hit, hit=replace(hit.hit, space=row.space, id=row.key)) for hit, row in pairs]

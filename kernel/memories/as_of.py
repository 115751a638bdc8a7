"""The memories of an earlier time: those unchanged since are in the index, the others are read from the history."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kernel.core.lazy_numpy import Floats, np
from kernel.search import quarantine, rerank
from kernel.search.bm25 import bm25, pack_tf
from kernel.search.documents import END_OF_TIME, Document, Within, matching_partitions
from kernel.search.extra_terms import indexed_words, query_terms
from kernel.search.fusion import Candidates, Reading, Weights
from kernel.search.lexical import Ranks, information, knows_word, word_starts
from kernel.search.named_values import named_values, value_of
from kernel.search.quarantine import Suspect
from kernel.search.vectors import embed_query, embed_question, embed_texts
from kernel.store.history import Past, PastSource, PastText
from kernel.store.transaction import SLICE_BYTES, Tx

if TYPE_CHECKING:
    from kernel.embed.model import Embedding

MAX_CHANGED = 1000  # changed memories that a search reads; with more, those with most words of the query; not measured
MAX_CANDIDATES = 10_000  # among which they are looked for, and documents that a list looks at
_MAX_BYTES = 2 * SLICE_BYTES  # of their texts
_MAX_COMPARED = 32 * SLICE_BYTES  # of texts in which words are counted, times the words; .11 s
_MAX_SCANNED = 50_000  # changes since; .17 s
_LEAST_PAGE, _MOST_PAGE = 50, 200  # memories that are read at once
_MAX_WORDS = 16  # by which they are chosen
_CANDIDATES = 100  # of each signal, as of a search of the index
_OPENING_SHARE = 0.5  # as in `rerank`, if neighbours do not count


class _Events(NamedTuple):
    """The last event of a memory up to a time, the first after it, and the size of the text between."""

    stood: int
    changed: int
    size: int


class Limits(NamedTuple):
    """The filters of a search: None excludes nothing, nor does "". Of `paths` only the keys that begin with
    `folder`.
    """

    spaces: Sequence[str] | None = None
    scopes: Sequence[str] | None = None
    folder: str = ""
    actor: str | None = None
    after: str = ""
    before: str = ""


Passes = Callable[[Document], bool]


def changed(
    tx: Tx,
    at: str,
    *,
    query: str = "",
    keys: Sequence[tuple[str, str]] | None = None,
    limits: Limits = Limits(),
    passes: Passes | None = None,
    limit: int = MAX_CHANGED,
) -> list[Document]:
    """Return the memories that stood at `at`, have changed since and pass, or those of these (space, key)
    pairs.

    With a query at most about 4 MiB of text, those with most of its words first; without a query the last changed
    first.
    """
    tx.flush_deferred()
    events = _events(tx, at, keys, limits)
    if query and (len(events) > limit or sum(event.size for event in events) > _MAX_BYTES):
        words = sorted(word_starts(tx, query), key=len, reverse=True)[:_MAX_WORDS]
        most = _MAX_COMPARED // max(1, len(words))
        events = tx.all("kernel.as_of.by_words", _Events, events=events, words=words, bytes=most)
    documents: dict[tuple[str, str], Document] = {}
    size = 0
    for document in _each_document(tx, events, max(limit, _LEAST_PAGE)):
        place = (document.space, document.key)
        before = documents.get(place)
        if before is not None and before.doc < document.doc:
            continue  # if clocks went back, the last of several events of one memory counts
        documents.pop(place, None)
        if passes is None or passes(document):
            documents[place] = document
            size += len(document.text)
        if len(documents) >= limit or (query and size >= _MAX_BYTES):
            break
    return [*documents.values()]


def _each_document(tx: Tx, events: Sequence[_Events], limit: int) -> Iterator[Document]:
    for page in _pages(events, limit):
        yield from _documents(tx, page)


def _events(tx: Tx, at: str, keys: Sequence[tuple[str, str]] | None, limits: Limits) -> list[_Events]:
    if keys is not None:
        return tx.all("kernel.as_of.changed_of", _Events, at=at, keys=[*keys], limit=MAX_CANDIDATES)
    pasts: Mapping[str, Past] = tx.context.past
    with_scope = {name for name, past in pasts.items() if past.keeps_scope}
    return tx.all(
        "kernel.as_of.changed",
        _Events,
        at=at,
        dialects=[*pasts],
        unrecorded=[space for past in pasts.values() for space in past.unrecorded],
        fixed=[space for space in limits.spaces or () if _dialect(space) in with_scope],
        scanned=_MAX_SCANNED,
        limit=MAX_CANDIDATES,
        **limits._replace(before=limits.before or END_OF_TIME)._asdict(),
    )


def _pages(events: Sequence[_Events], limit: int) -> Iterator[list[_Events]]:
    """Yield as many at once as a slice of texts holds, at least one event."""
    page: list[_Events] = []
    size = 0
    limit = min(limit, _MOST_PAGE)
    for event in events:
        if page and (len(page) >= limit or size + event.size > SLICE_BYTES):
            yield page
            page, size = [], 0
        page.append(event)
        size += event.size
    if page:
        yield page


def unchanged(tx: Tx, at: str, docs: Sequence[int]) -> list[int]:
    """Return those of the documents that stood at `at` as they are."""
    tx.flush_deferred()
    return tx.all("kernel.as_of.unchanged", int, at=at, ids=docs)


def newest_unchanged(tx: Tx, at: str, limits: Limits, within: Within | None, *, limit: int, offset: int) -> list[int]:
    """Return `documents.newest` of those that stood at `at` as they are, from an offset."""
    tx.flush_deferred()
    partitions = None if within is None else matching_partitions(tx, within)
    span = {"after": limits.after, "before": limits.before or END_OF_TIME, "at": at, "limit": limit, "offset": offset}
    params = {"actor": limits.actor, "folder": limits.folder, "partitions": partitions}
    return tx.all("kernel.as_of.newest_unchanged", int, **params, **span)


def is_unrecorded(tx: Tx, space: str) -> bool:
    """Return whether the history does not hold the texts of a space."""
    past: Past | None = tx.context.past.get(_dialect(space))
    return past is None or space in past.unrecorded


def count_unrecorded(tx: Tx, at: str, spaces: Sequence[str], scopes: Sequence[str] | None) -> int:
    """Return the documents of these spaces that stood at `at` and have changed since."""
    return tx.one("kernel.as_of.count_unrecorded", int, at=at, spaces=spaces, scopes=scopes) or 0 if spaces else 0


def find_in(tx: Tx, query: str, texts: Sequence[str], ids: Sequence[int], weights: Weights) -> Candidates:
    """Return `index.find` among texts that are not in the index, under ids that no document has."""
    ranks = _best(_bm25(tx, query, texts)) if weights.words > 0 else {}
    query_vector = embed_query(tx, query) if weights.meaning > 0 or weights.late > 0 else None
    text_vectors = embed_texts(tx, texts) if query_vector else None
    tx.drop_embeddings(texts)
    vectors = [query_vector, *text_vectors] if query_vector and text_vectors else []
    cosines = _cosines(vectors) if weights.meaning > 0 else {}
    near = _best(cosines)
    positions = sorted(ranks.keys() | near.keys(), key=ids.__getitem__)
    nan = float("nan")
    rows = [(ids[position], ranks.get(position, nan), cosines.get(position, nan)) for position in positions]
    docs, words, meaning = zip(*rows, strict=True) if rows else ((), (), ())
    late, exact, share = np.full((3, len(positions)), nan)
    embedder = tx.context.embedder
    with_tokens = [at for at, position in enumerate(positions) if vectors and vectors[position + 1].tokens]
    question = embed_question(tx, query) if with_tokens and weights.late > 0 else None
    if embedder and question:
        tokens = [vectors[positions[at] + 1].tokens for at in with_tokens]
        columns = embedder.interaction(question.whole.tokens, tokens, _OPENING_SHARE, question.subject)
        late[with_tokens], exact[with_tokens], share[with_tokens] = columns[:3]
    near, by_words = np.array(meaning, np.float64), np.array(words, np.float64)
    long = [at for at in with_tokens if len(texts[positions[at]]) > rerank.READ_CHARS and by_words[at] > 0]
    if long and question and weights.meaning > 0:
        scores = rerank.judge(tx, query, question, [rerank.Body(texts[positions[at]], "") for at in long])
        if scores is not None:
            at = np.array(long)[scores.at]
            values = near, late, exact, share
            near, late, exact, share = map(rerank.raised, values, (at,) * len(values), scores[1:])
    evidence = by_words, near, late, exact, share, _held(tx, query, [texts[position] for position in positions])
    return Candidates(np.array(docs, np.int64), *evidence, query=Reading(query, information(tx, query)))


def _held(tx: Tx, query: str, texts: Sequence[str]) -> Floats:
    """Return the shares that texts hold of the value that a query is, or of those that it names."""
    value, knows = value_of(query) or named_values(query), knows_word(tx)
    return np.array([value and value.share(text, knows) for text in texts], np.float64)


def _documents(tx: Tx, events: Sequence[_Events]) -> list[Document]:
    """Return the memories of these events in that order, under ids that no document has; of several of one memory the
    last.
    """
    latest: dict[tuple[str, str], PastText] = {}
    for state in sorted(tx.all("kernel.as_of.states", PastText, events=events)):
        latest[state.space, state.key] = state
    by_dialect: dict[str, list[PastText]] = {}
    for state in latest.values():
        by_dialect.setdefault(_dialect(state.space), []).append(state)
    documents: list[Document] = []
    for dialect, states in by_dialect.items():
        past: Past | None = tx.context.past.get(dialect)
        if past is not None:
            sources = zip(states, past.sources(tx, states), strict=True)
            documents += [_document(state, source) for state, source in sources if source is not None]
    position = {-event.stood: at for at, event in enumerate(events)}
    documents.sort(key=lambda document: position[document.doc])
    suspects = [Suspect(item.doc, item.space, item.key, item.text) for item in documents]
    rules = quarantine.rules_of(tx, suspects)
    return [replace(item, flag=rule) for item, rule in zip(documents, rules, strict=True)]


def _dialect(space: str) -> str:
    return space.partition(":")[0]


def _document(state: PastText, source: PastSource) -> Document:
    return Document(-state.event, state.space, state.key, *source, *state[-5:])


def _bm25(tx: Tx, query: str, texts: Sequence[str]) -> Ranks:
    """Return the BM25 of the texts that hold terms of the query, by their positions, with the frequencies of
    the index.
    """
    stems = [*dict.fromkeys(term.stem for term in query_terms(query, tx.tokenize))]
    term_counts = [Counter(_stems(tx, text)) for text in texts]
    lengths = [counts.total() for counts in term_counts]
    mean = sum(lengths) / max(1, len(lengths))
    rows = [
        pack_tf([counts[stem] for stem in stems], length, mean)
        for counts, length in zip(term_counts, lengths, strict=True)
    ]
    frequencies = dict(tx.rows("kernel.as_of.document_frequencies", stems=stems))
    total = tx.context.search_cache.last_ids(tx).doc + len(texts)
    ranks = bm25(rows, len(stems), total, [frequencies.get(stem, 0) for stem in stems]) if stems else []
    return {at: rank for at, rank in enumerate(ranks) if rank > 0}


def _stems(tx: Tx, text: str) -> list[str]:
    whole = f"{text} {indexed_words(text)}".replace("\0", " ")
    return [stem for _, _, stem in tx.tokenize(whole)]


def _cosines(vectors: "Sequence[Embedding]") -> Ranks:
    if len(vectors) < 2:
        return {}
    rows = np.frombuffer(b"".join([vector.vector for vector in vectors]), np.int8).reshape(len(vectors), -1)
    units = rows * np.array([vector.scale for vector in vectors], np.float32)[:, None]
    return {at: cosine for at, cosine in enumerate((units[1:] @ units[0]).tolist()) if vectors[at + 1].scale}


def _best(ranks: Ranks) -> Ranks:
    best: Callable[[int], float] = ranks.__getitem__
    return {at: ranks[at] for at in sorted(ranks, key=best, reverse=True)[:_CANDIDATES]}


def expired_of(tx: Tx, places: Iterable[tuple[str, str]], at: str) -> set[tuple[str, str]]:
    """Return those of some (space, key) pairs that have expired at a time."""
    keys: dict[str, list[tuple[str, str]]] = {}
    for space, key in places:
        dialect = space.partition(":")[0]
        if dialect in tx.context.expired:
            keys.setdefault(dialect, []).append((space, key))
    return {place for dialect, pairs in keys.items() for place in tx.context.expired[dialect](tx, pairs, at)}

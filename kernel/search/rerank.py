"""Reranking of the best hits: late interaction, near-duplicates, neighbours in time, and passages.

A vector is that of a text's beginning, as far as the model reads, and not of the words beside it, such as tags. A
document that holds words of the query further on is judged by the passage around them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain, islice
from typing import Any, NamedTuple

from kernel.core.lazy_numpy import Array, Bools, Floats, Ids, Matrix, np
from kernel.embed.model import Embedder, Embedding
from kernel.search.cache import SearchCache
from kernel.search.documents import seen_among
from kernel.search.fusion import (
    USUALLY_COMMON,
    Candidates,
    Fused,
    Turns,
    Weights,
    fuse_candidates,
    positions,
    preliminary_order,
    turns_of,
)
from kernel.search.lexical import knows_word, word_starts
from kernel.search.named_values import NamedValues, Value, folded, named_values, value_of
from kernel.search.relations import Compared, answering
from kernel.search.vectors import Question, embed_question, embed_texts, model_id, unit_vectors
from kernel.store.transaction import Tx

READ_CHARS = 1500  # of a text, which the model reads for sure: 512 tokens of three characters
MOST = 16  # documents of a query, those that rank best; not measured
MOST_BYTES = 4 << 20  # of their texts
_MOST_WORDS = 16  # of a query, the rarest, as in late interaction
_BEFORE, _AFTER = 80, 160  # characters around the first of the words; some 50 tokens, as a turn of a conversation
_OPENING_CHARS = 80  # of the text, which says the source of the passage
_MOST_PLACES = 8  # of a word that are tried
_MOST_LOOKED_AT = 256  # places of a short word, most of which are within others
_SHORT = 4  # letters of a word that is looked for at the beginning of words only


class Body(NamedTuple):
    """The text of a document and the words beside it."""

    text: str
    words: str


class Judged(NamedTuple):
    """The evidence of passages, each of the document at a position: cosine, late interaction, shares of the query."""

    at: list[int]
    meaning: Floats
    late: Floats
    exact: Floats
    near: Floats


def judge(tx: Tx, text: str, query: Question, bodies: Sequence[Body]) -> Judged | None:
    """Return the evidence of the passages of documents; None if no beginning leaves out a word of the query."""
    by_position = {at: passage for at, passage in enumerate(passages_of(tx, text, bodies)) if passage}
    embedder, texts = tx.context.embedder, [*by_position.values()]
    embeddings = embed_texts(tx, texts) if by_position and embedder else None
    if not embeddings or embedder is None:
        return None
    tx.drop_embeddings(texts)
    shares = embedder.interaction(
        query.whole.tokens, [embedding.tokens for embedding in embeddings], subject=query.subject
    )
    cosines = [query.whole.cosine(embedding) for embedding in embeddings]
    return Judged([*by_position], *(np.array(values, np.float64) for values in (cosines, *shares[:3])))


def passages_of(tx: Tx, text: str, bodies: Sequence[Body]) -> list[str]:
    """Return of each document the passage that holds most of a query, with the opening before it; empty if the
    beginning lacks no word that the rest has.
    """
    starts = dict(nlargest(_MOST_WORDS, word_starts(tx, text).items(), key=lambda item: item[1]))
    beginnings = [*map(folded, (body.text[:READ_CHARS] for body in bodies))]
    return [_passage(body, beginning, starts) for body, beginning in zip(bodies, beginnings, strict=True)]


def raised(values: Floats, at: Array, least: Floats) -> Floats:
    """Return the values, of which those at some positions are at least as large as others."""
    values = values.copy()
    values[at] = np.fmax(values[at], least)
    return values


def _passage(body: Body, beginning: str, starts: Mapping[str, float]) -> str:
    missing = [start for start in starts if not _holds(beginning, start)]
    if not missing:
        return ""
    rest = f"{body.text[READ_CHARS - _BEFORE :]}\n{body.words}" if len(body.text) > READ_CHARS else body.words
    rest = folded(rest)
    best, most = "", 0.0
    for start in missing:
        for at in islice(_places(rest, start), _MOST_PLACES):
            window = rest[max(0, at - _BEFORE) : at + _AFTER]
            total = sum(weight for word, weight in starts.items() if _holds(window, word))
            if total > most:
                best, most = window, total
    opening = body.text[:_OPENING_CHARS].partition("\n")[0]
    return f"{opening}\n{best}" if best else ""


def _holds(text: str, start: str) -> bool:
    return next(_places(text, start), None) is not None


def _places(text: str, start: str) -> Iterator[int]:
    """Yield the positions at which a word begins, or of a longer word any position, as in a name."""
    at = text.find(start)
    for _ in range(_MOST_LOOKED_AT):
        if at < 0:
            return
        if len(start) >= _SHORT or not (at and text[at - 1].isalnum()):
            yield at
        at = text.find(start, at + 1)


DUPLICATE_COSINE = 0.85  # .9 before the model was fitted; a flood of 1,000 copies stays one group
LONG_DUPLICATE_COSINE = 0.9  # long texts about one thing are alike: .85 costs .013 nDCG@10 on Cranfield, .008 on CoSQA
LONG_TEXT_TOKENS = 48
# So many documents are compared with all before them, as many as a first page of candidates has. Later documents are
# compared with the first of each group alone, twice as many at most, so that a flood costs a recall little more than
# other hits do.
MOST_COMPARED = 256
_STANDING = 4  # for a group
_AT_ONCE = 128


class NearDuplicates:
    """Documents with their unit vectors, in groups of near-duplicates.

    Groups are transitive: a document joins every group that holds a near-duplicate of it, and so merges them. The
    first document of a group is its leader.
    """

    def __init__(self, dimensions: int) -> None:
        self.docs: list[int] = []
        self.units: Matrix = np.empty((0, dimensions), np.float32)
        self.ranks: dict[int, int] = {}  # how many documents of its group came before a document, 0 left out
        self._leaders: Ids = np.empty(0, np.int64)  # the position of the leader of each document's group
        self._thresholds: Matrix = np.empty(0, np.float32)
        self._compared: Ids = np.empty(0, np.int64)  # positions

    @property
    def leaders(self) -> dict[int, int]:
        """Return the leader of each document's group."""
        return {doc: self.docs[leader] for doc, leader in zip(self.docs, self._leaders.tolist(), strict=True)}

    def add(self, docs: Sequence[int], units: Matrix, long: Sequence[bool] | Bools) -> None:
        """Adds documents with their unit vectors, in order; `long` are texts of more than LONG_TEXT_TOKENS tokens."""
        own = np.where(long, np.float32(LONG_DUPLICATE_COSINE), np.float32(DUPLICATE_COSINE))
        begin, end = len(self.docs), len(self.docs) + len(docs)
        self.docs += docs
        self.units, self._thresholds = np.concatenate([self.units, units]), np.concatenate([self._thresholds, own])
        self._leaders = np.concatenate([self._leaders, np.arange(begin, end)])
        whole = min(end, max(begin, MOST_COMPARED))
        self._compare(np.arange(begin, whole))
        for at in range(whole, end, _AT_ONCE):
            positions: list[int] = self._compared.tolist()
            standing = [self.ranks.get(self.docs[position], 0) < _STANDING for position in positions]
            self._compared = self._compared[np.array(standing, np.bool_)]
            left = self._join(np.arange(at, min(end, at + _AT_ONCE)))
            self._compare(left[: max(0, 2 * MOST_COMPARED - len(self._compared))])

    def _similar(self, rows: Ids) -> Bools:
        """Return which of the compared documents each of these is a near-duplicate of."""
        thresholds = np.maximum(self._thresholds[rows][:, None], self._thresholds[self._compared])
        return self.units[rows] @ self.units[self._compared].T >= thresholds

    def _compare(self, rows: Ids) -> None:
        """Groups these documents with each other and with those that are compared, which they become too."""
        positions = self._compared = np.concatenate([self._compared, rows])
        begin, similar = len(positions) - len(rows), self._similar(rows)
        for at in (np.add.reduce(similar, axis=1, dtype=np.intp) > 1).nonzero()[0].tolist():
            position = int(positions[begin + at])
            before = self._leaders[:position]
            is_leader = np.zeros(position, np.bool_)
            is_leader[before[positions[: begin + at][similar[at, : begin + at]]]] = True
            members = is_leader[before].nonzero()[0]
            if len(members):
                self.ranks[self.docs[position]] = len(members)
                self._leaders[members] = self._leaders[position] = members[0]

    def _join(self, rows: Ids) -> Ids:
        similar = self._similar(rows)
        like = np.logical_or.reduce(similar, axis=1)
        leaders = self._leaders[self._compared[similar[like].argmax(axis=1)]]
        sizes = np.bincount(self._leaders[: rows[0]])[leaders]
        self._leaders[rows[like]] = leaders
        joining: list[int] = rows[like].tolist()
        self.ranks.update(zip([self.docs[at] for at in joining], sizes.tolist(), strict=True))
        return rows[~like]


_NEIGHBOUR_SEEDS = 16  # hits that add their neighbours as candidates; LoCoMo R@10 .763, with 8 seeds .742
_GROUP_SIZE_IN_POOL = 3  # near-duplicates in the pool, so that one text repeated leaves room for others; see README.md
_NEIGHBOURS = [0, 1, 3, 4]  # columns of a window, whose document is in column 2
_NEIGHBOUR_SHARE_WITHOUT_VECTORS = 0.4  # of their weight, if coherence is unknown; not measured
# Share of the first tokens in late interaction, if neighbours do not count: nDCG@10 +.012 on passages, +.016 on
# Cranfield, with a weight of .4 for late interaction.
_OPENING_SHARE = 0.5
_BY_CHANCE = 0.04  # coherence that texts in no order seldom exceed; from here on neighbours count if they are no turns
_COMPARED = 2  # times the pool: texts in which a value is looked for
_ALL = 0.99  # of the query, but for rounding
_HIGH_SHARE = 0.5  # of the best BM25; below it words beside a text, such as tags, do not make it a hit; not measured


Passing = Callable[[Sequence[int]], Collection[int]]
"""Those of some documents that pass the filters of a search."""
_Asked = tuple[Value | NamedValues, Callable[[], list[tuple[int, Body]]]]


class Settings(NamedTuple):
    """The number of hits reranked; and the coherence from which neighbours begin to count, from and up to which they
    count fully, and from which they no longer do: documents that are alike are a list, no conversation.

    Chosen on development data, see README.md.
    """

    pool: int = 32
    coherence: tuple[float, ...] = (0.02, 0.05, 0.2, 0.28)


USUAL = Settings()


class Ranking(NamedTuple):
    """Candidates with their scores, best first, and for each of the pool the first of its near-duplicates, if any."""

    fused: Fused
    leaders: Mapping[int, int]


class _Pool(NamedTuple):
    """The documents to rerank, each between its neighbours (see `fuse_candidates`), their tokens, none without a
    vector, the bytes of their text and of the words beside it, their near-duplicates, and those
    of texts in a conversation as turns.
    """

    windows: Ids
    tokens: list[bytes]
    sizes: Ids
    turns: Turns | None
    duplicates: NearDuplicates


def rerank(
    tx: Tx, text: str, matches: Candidates, weights: Weights, passing: Passing | None = None, settings: Settings = USUAL
) -> Ranking:
    """Return the candidates of a search for `text` in their final order, with neighbours that no signal found.

    The best `settings.pool` are reranked, at most two of each group of near-duplicates. Neighbours that are not
    `passing` the filters of the search are left out: their texts must not count.
    """
    order = preliminary_order(matches, weights)
    text = matches.query.text or text
    value = _ask_value(tx, text, matches.docs[order], _COMPARED * settings.pool)  # texts come with the next statement
    model = model_id(tx)
    embedder = tx.context.embedder
    query = embed_question(tx, text) if model else None
    if embedder is None or query is None:
        windows = _windows(_rows(tx, model, matches.docs[order[: settings.pool]]))
        neighbours = weights.neighbours * _NEIGHBOUR_SHARE_WITHOUT_VECTORS
        return Ranking(fuse_candidates(_with_value(tx, value, matches), weights, windows, neighbours), {})
    pool = _pool(tx, embedder, model, matches.docs[order], settings.pool)
    share = 0.0
    if weights.neighbours > 0:
        seeds = pool.windows[:_NEIGHBOUR_SEEDS]
        neighbour_ids, units = unit_vectors(
            tx, model, seeds[(positions(matches.docs, seeds) < 0) & (seeds > 0)].tolist()
        )
        share = _neighbour_share(pool, neighbour_ids, units, seeds, settings.coherence)
        if share:
            mask = np.isin(neighbour_ids, [*passing(neighbour_ids.tolist())]) if passing else slice(None)
            matches = _with_neighbours(
                matches, neighbour_ids[mask], units[mask], query.whole if weights.meaning > 0 else None
            )
    compared = None
    if weights.late > 0:
        matches, compared = _with_late(matches, embedder, query, pool, _OPENING_SHARE * (1 - share))
    matches = _with_passages(tx, text, matches, query, pool, weights)
    languages = _languages(matches, embedder, query.whole, pool)
    matches = _with_value(tx, value, matches)
    neighbours, common = weights.neighbours * share, _common(tx, matches, query.whole, pool.duplicates)
    ranking = fuse_candidates(matches, weights, pool.windows, neighbours, languages, pool.turns, common)
    leaders = pool.duplicates.leaders if pool.duplicates.ranks else {}
    if compared:
        foreign = () if languages is None else matches.docs[languages > 0].tolist()
        ranking = answering(tx, text, ranking, compared, leaders, foreign)
    return Ranking(ranking, leaders)


def _with_late(
    matches: Candidates, embedder: Embedder, query: Question, pool: _Pool, opening: float
) -> tuple[Candidates, Compared]:
    """Return the candidates with the late interaction of those in the pool, and how near their tokens are.

    A near-duplicate that has no place in the pool takes the values of the first of its group, its score the lower the
    more of the group come before it: else a text that is stored thirty times hides all others that answer.
    """
    places = [at for at, tokens in enumerate(pool.tokens) if tokens]
    shares = embedder.interaction(query.whole.tokens, [pool.tokens[at] for at in places], opening, query.subject)
    late, exact, near = matches.late.copy(), matches.exact.copy(), matches.near.copy()
    # Near-duplicates say the same, so that they are no further chance to be like a query.
    documents = matches.query.documents * len(pool.tokens) // max(len(pool.tokens), len(pool.duplicates.docs), 1)
    reading = matches.query._replace(words=query.words, documents=documents, is_request=query.is_request)
    matches = matches._replace(late=late, exact=exact, near=near, query=reading)
    at = matches.docs.searchsorted(pool.windows[places, 2])
    late[at], exact[at], near[at] = shares[:3]
    duplicates = [doc for doc, rank in pool.duplicates.ranks.items() if rank >= _GROUP_SIZE_IN_POOL]
    if duplicates:
        leaders = pool.duplicates.leaders
        at, of = matches.docs.searchsorted(duplicates), matches.docs.searchsorted([leaders[doc] for doc in duplicates])
        for values in (late, exact, near):
            values[at] = values[of]
        ranks = np.asarray([pool.duplicates.ranks[doc] for doc in duplicates], np.float32)
        late[at] = np.minimum(late[at], late[at] * _GROUP_SIZE_IN_POOL / (ranks + 1))
    return matches, Compared(pool.windows[places, 2].tolist(), shares.cosines, shares.shares, pool.sizes[places, 0])


def _with_passages(
    tx: Tx, text: str, matches: Candidates, query: Question, pool: _Pool, weights: Weights
) -> Candidates:
    """Return the candidates with the evidence of a passage if that is better than that of the whole text."""
    docs = _judged_by_passages(matches, pool)
    bodies = dict(tx.all("kernel.rerank.bodies", _body, ids=docs, most=MOST_BYTES)) if docs else {}
    evidence = judge(tx, text, query, [*bodies.values()]) if bodies else None
    if evidence is None:
        return matches
    at = matches.docs.searchsorted(np.array([*bodies], np.int64)[evidence.at])
    if weights.meaning > 0:
        matches = matches._replace(meaning=raised(matches.meaning, at, evidence.meaning))
    if weights.late > 0:
        matches = matches._replace(
            late=raised(matches.late, at, evidence.late),
            exact=raised(matches.exact, at, evidence.exact),
            near=raised(matches.near, at, evidence.near),
        )
    return matches


def _ask_value(tx: Tx, text: str, docs: Ids, most: int) -> _Asked | None:
    """Return the value that a query is or those that it names, and a function that returns the texts of the first
    documents, of a part of words those of all.
    """
    value = (value_of(text) or named_values(text)) if len(docs) else None
    if value is None:
        return None
    docs = docs if value.parts else docs[:most]
    return value, tx.ask("kernel.rerank.bodies", _body, ids=docs.tolist(), most=MOST_BYTES // len(docs))


def _with_value(tx: Tx, question: _Asked | None, matches: Candidates) -> Candidates:
    """Return the candidates with the evidence of a query that is a single name, number, date, digest or word, or names
    such values: the share that each text holds, however it is written there.
    """
    if question is None:
        return matches
    (value, bodies), knows = question, knows_word(tx)
    share = {doc: value.share(f"{body.text}\n{body.words}", knows) for doc, body in bodies()}
    # Texts that are not compared are about something else; those that are not in the index have been compared before.
    shares = np.where(np.isnan(matches.value), np.float64(np.nan if value.is_open else 0.0), matches.value)
    shares[matches.docs.searchsorted([*share])] = np.array([*share.values()], np.float64)
    if np.isnan(shares).all() or (value.parts and 1.0 in shares and knows(value.words[0])):
        return matches
    words, late = (
        np.where(shares > 0, np.nan_to_num(column) + shares * np.nan_to_num(column).max(initial=0.0), column)
        for column in (matches.words, matches.late)
    )
    if isinstance(value, NamedValues):
        return matches._replace(words=words, late=late, value=shares, query=matches.query._replace(names_value=True))
    meaning, exact, near = (
        np.where(shares > 0, np.fmax(column, shares), column)
        for column in (matches.meaning, matches.exact, matches.near)
    )
    exact[shares == 0] = 0.0
    meaning = matches.meaning if np.isnan(matches.meaning).all() else meaning
    return Candidates(matches.docs, words, meaning, late, exact, near, shares, matches.query)


def _judged_by_passages(matches: Candidates, pool: _Pool) -> list[int]:
    """Return the documents of the pool that are found by words and whose vector may not see these: long documents, and
    of those with words beside their text the best by words.
    """
    docs = pool.windows[:, 2]
    at = matches.docs.searchsorted(docs)
    words, sizes, beside = np.fmax(matches.words[at], 0.0), pool.sizes[:, 0], pool.sizes[:, 1]
    is_unseen = (sizes > READ_CHARS) | ((beside > 0) & (words >= _HIGH_SHARE * np.maximum.reduce(words, initial=0.0)))
    mask = is_unseen & (words > 0) & ~(matches.exact[at] >= _ALL) & ~np.isnan(matches.meaning[at])
    left, picks = MOST_BYTES, list[int]()
    for doc, size in zip(docs[mask].tolist(), (sizes + beside)[mask].tolist(), strict=True):
        if size <= left and len(picks) < MOST:
            left -= size
            picks.append(doc)
    return picks


def _body(doc: int, text: str, words: str) -> tuple[int, Body]:
    return doc, Body(text, words)


def _languages(matches: Candidates, embedder: Embedder, query: Embedding, pool: _Pool) -> Ids | None:
    """Return the `languages` of `strengths`, None if all are English; a candidate outside the pool counts as like most
    of it.
    """
    foreign = embedder.is_foreign([query.tokens, *pool.tokens])
    if not np.logical_or.reduce(foreign):
        return None
    own, *rest = foreign.tolist()
    texts = np.full(len(matches.docs), 2 * sum(rest) > len(rest), np.int64)
    texts[matches.docs.searchsorted(pool.windows[:, 2])] = rest
    return 3 - texts if own else texts


def _common(tx: Tx, matches: Candidates, query: Embedding, duplicates: NearDuplicates) -> Floats | float:
    """Return how alike each candidate and a query are by the direction that all texts share; the mean of those in the
    pool for the others.
    """
    if not duplicates.docs:
        return USUALLY_COMMON
    cache: SearchCache = tx.context.search_cache
    direction = cache.vectors.sketcher.common
    of_query = query.scale * float(np.frombuffer(query.vector, np.int8) @ direction)
    shares = of_query * (duplicates.units @ direction)
    values = np.full(len(matches.docs), np.add.reduce(shares) / len(shares))
    values[matches.docs.searchsorted(duplicates.docs)] = shares
    return values


def _pool(tx: Tx, embedder: Embedder, model: int, docs: Ids, size: int) -> _Pool:
    duplicates, pool_rows, count = NearDuplicates(embedder.dimensions), list[Any](), size
    while len(docs) and len(pool_rows) < size:
        rows = _rows(tx, model, docs[:count])
        docs, count = docs[count:], 2 * count
        embedded_rows = [row for row in rows if row[7]]
        whole = np.frombuffer(b"".join([row[6] for row in embedded_rows]), np.int8).reshape(-1, embedder.dimensions)
        units = whole * np.array([row[7] for row in embedded_rows], np.float32)[:, None]
        long = embedder.counts([row[5] for row in embedded_rows]) > LONG_TEXT_TOKENS
        duplicates.add([row[2] for row in embedded_rows], units, long)
        ranks = duplicates.ranks
        pool_rows += [row for row in rows if ranks.get(row[2], 0) < _GROUP_SIZE_IN_POOL] if ranks else rows
    numbers = np.fromiter(chain.from_iterable([row[:5] + row[8:] for row in pool_rows]), np.int64).reshape(-1, 8)
    turns = turns_of(numbers[:, 5], numbers[:, 7])
    return _Pool(numbers[:, :5], [row[5] for row in pool_rows], numbers[:, 5:7], turns, duplicates)


def _rows(tx: Tx, model: int, docs: Ids) -> list[Any]:
    if not tx.is_limited:
        return tx.rows("kernel.rerank.pool", ids=docs.tolist(), model=model)
    with tx.held_to(None):  # for each document it would ask for five others whether they are in reach
        rows = tx.rows("kernel.rerank.pool", ids=docs.tolist(), model=model)
    if not tx.sees_parts:
        return rows
    around = {row[at] for row in rows for at in _NEIGHBOURS}
    seen_docs = seen_among(tx, around)
    return [_reachable(row, seen_docs) for row in rows]


def _reachable(row: Any, seen_docs: Collection[int]) -> Any:
    """Return a row without the neighbours that are elsewhere for a key held to places, and without their facts."""
    before, doc, after = row[:2], row[2], row[3:5]
    reachable = (*(at if at in seen_docs else 0 for at in before), doc, *(at if at in seen_docs else 0 for at in after))
    return (*reachable, *row[5:10], row[10] if row[3] in seen_docs else 0)


def _windows(rows: list[Any]) -> Ids:
    return np.array([row[:5] for row in rows], np.int64).reshape(-1, 5)


def _neighbour_share(pool: _Pool, neighbours: Ids, units: Matrix, windows: Ids, coherent: tuple[float, ...]) -> float:
    """Return the share of their weight that neighbours have: all of it if documents are like their own neighbours,
    as in a conversation, but not the same but for a name, as in a list.
    """
    docs = np.concatenate([np.array(pool.duplicates.docs, np.int64), neighbours])
    if not len(docs):
        return 0.0
    rising = docs.argsort()
    at = positions(docs[rising], windows)
    coherence = _coherence(np.concatenate([pool.duplicates.units, units]), np.where(at < 0, at, rising.take(at)))
    steps = coherent if pool.turns else np.maximum(coherent, _BY_CHANCE)
    return float(np.interp(coherence, steps, (0.0, 1.0, 1.0, 0.0)))


def _coherence(units: Matrix, windows: Ids) -> float:
    """Return how much more similar documents are to their own neighbours than to those of others, up to 1.

    `windows` holds the rows of `units` for each document between its neighbours, -1 for none. The neighbours of other
    candidates are the baseline: they are alike as far as the query goes. 0 if there are too few neighbours.
    """
    windows = windows[windows[:, 2] >= 0]
    around = windows[:, _NEIGHBOURS]
    has_neighbour = (around >= 0).astype(np.float32)
    middle, neighbours = units[windows[:, 2]], units[around] * has_neighbour[:, :, None]
    # By side: the cosines of each document and its neighbour, and of all documents with a neighbour and all neighbours.
    own, counts = (middle[:, None] @ neighbours.swapaxes(1, 2)).sum(axis=(0, 1)), np.add.reduce(has_neighbour)
    every = ((has_neighbour.T @ middle) * np.add.reduce(neighbours)).sum(axis=1)
    sides = counts > 1
    if not np.logical_or.reduce(sides):
        return 0.0
    own, every, counts = own[sides], every[sides], counts[sides]
    within = float(np.add.reduce(own / counts) / len(own))
    between = float(np.add.reduce((every - own) / (counts**2 - counts)) / len(own))
    return (within - between) / (1 - between) if between < 1 else 0.0


def _with_neighbours(matches: Candidates, docs: Ids, units: Matrix, query: Embedding | None) -> Candidates:
    missing = np.full(len(docs), np.nan)
    cosines = missing if query is None else units @ (np.frombuffer(query.vector, np.int8) * np.float32(query.scale))
    return matches.joined(Candidates(docs, missing, cosines, missing, missing, missing, missing))

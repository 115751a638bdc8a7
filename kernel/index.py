"""The search index over every dialect: put, drop, and search that returns evidence, not verdicts."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from kernel.sketch import Row, Sketches
from kernel.store import Tx, defer, origin, settle, tokenize, world
from kernel.terms import Term, glued, grams, match, match_any, place_word, query_grams, query_words

CANDIDATES = 100
_SKETCH_CANDIDATES = 512
_TRIES = 4
_FREQUENCY_DRIFT = 1.125
_WORDS = 2000


class Hit(NamedTuple):
    """Evidence about one document; None where a signal did not run or did not find it.

    `text_rank` is BM25, larger is better; `similarity` the cosine in [-1, 1]; `distance` the L2 distance of the unit
    vectors in [0, 2]; `late` the late-interaction score.
    """

    doc: int
    space: str
    id: str
    text_rank: float | None
    distance: float | None
    similarity: float | None
    late: float | None = None


class Memory:
    """What search keeps between calls: sketches of the vectors and how often words occur."""

    def __init__(self, sketches: Sketches) -> None:
        self.sketches = sketches
        self._frequencies: dict[str, int] = {}
        self._total = 0
        self._changer: Tx | None = None

    def change(self, tx: Tx) -> None:
        """Notes that `tx` sees rows, or the lack of rows, that a rollback would undo."""
        self._changer = tx

    def may_learn(self, tx: Tx) -> bool:
        """Whether all that `tx` sees of the index is committed, so that it may be kept for others."""
        return tx.readonly or tx is not self._changer

    def frequencies(
        self, total: int, stems: Sequence[str], count: Callable[[list[str]], dict[str, int]]
    ) -> dict[str, int]:
        """How many documents hold each stem; counted once, and again when the index has grown by an eighth."""
        if not self._total <= total <= self._total * _FREQUENCY_DRIFT:
            self._frequencies = {}
            self._total = total
        known = self._frequencies
        if missing := [stem for stem in stems if not known.get(stem)]:
            known.update(count(missing))
        return {stem: known.get(stem, 0) for stem in stems}


class _Put(NamedTuple):
    space: str
    key: str
    scope: str
    text: str
    dialect: str
    tool: str
    actor: str
    at: str


def put(tx: Tx, space: str, key: str, text: str, *, scope: str = "") -> None:
    """Makes `(space, key)` findable by `text`, instead of what it was findable by before."""
    defer(tx, _flush, _Put(space, key, scope, text, *origin(tx), tx.now))


def drop(tx: Tx, space: str, key: str) -> None:
    """Makes `(space, key)` unfindable; nothing happens if it is not in the index."""
    defer(tx, _flush, (space, key))


def drop_scope(tx: Tx, space: str, scope: str) -> None:
    """Makes everything of one scope of a space unfindable."""
    settle(tx)
    stale = tx.all("kernel.index.stale_scope", _Stale, space=space, scope=scope)
    _delete(tx, stale)


class _Stale(NamedTuple):
    id: int
    space: str
    key: str
    created_at: str


class _Place(NamedTuple):
    id: int
    space: str
    scope: str


def _flush(tx: Tx, items: list[Any]) -> None:
    last: dict[tuple[str, str], _Put | None] = {}
    for item in items:
        last[item[0], item[1]] = item if isinstance(item, _Put) else None
    born = _delete(tx, tx.all("kernel.index.stale", _Stale, keys=_json(list(last))))
    if puts := [item for item in last.values() if item is not None]:
        _insert(tx, puts, born)


def _delete(tx: Tx, stale: Sequence[_Stale]) -> dict[tuple[str, str], str]:
    if stale:
        world(tx).memory.change(tx)
        ids = _json([row.id for row in stale])
        tx.run("kernel.index.unindex", ids=ids)
        tx.run("kernel.index.delete_vectors", ids=ids)
        tx.run("kernel.index.delete_docs", ids=ids)
    return {(row.space, row.key): row.created_at for row in stale}


def _insert(tx: Tx, puts: Sequence[_Put], born: dict[tuple[str, str], str]) -> None:
    world(tx).memory.change(tx)
    places = _places(tx, {(put.space, put.scope) for put in puts})
    after = tx.one("kernel.index.last_doc", int) or 0
    rows = [
        (
            after + number, put.space, put.key, places[put.space, put.scope], put.text, grams(put.text),
            put.dialect, put.tool, put.actor, born.get((put.space, put.key), put.at), put.at,
        )
        for number, put in enumerate(puts, start=1)
    ]  # fmt: skip
    tx.run("kernel.index.insert_docs", rows=_json(rows))
    tx.run("kernel.index.index_docs", after=after)
    insert_vectors(tx, [(row[0], row[4]) for row in rows])


def insert_vectors(tx: Tx, docs: Sequence[tuple[int, str]]) -> int:
    """Embeds and stores the vectors of documents, given as (id, text); how many were stored."""
    if not docs or world(tx).embedder is None:
        return 0
    embedded = tx.embed([text for _, text in docs])
    memory: Memory = world(tx).memory
    memory.change(tx)
    sketches = memory.sketches.sketcher.sketch([item.vector for item in embedded])
    rows: list[tuple[int, float, int, int]] = []
    end = 0
    for (doc, _), item in zip(docs, embedded, strict=True):
        rows.append((doc, item.scale, end + 1, len(item.tokens)))
        end += len(item.tokens)
    return tx.run(
        "kernel.index.insert_vectors",
        rows=_json(rows),
        model=model_id(tx) or _add_model(tx),
        vectors=b"".join([item.vector for item in embedded]),
        vector_size=len(embedded[0].vector),
        sketches=b"".join(sketches),
        sketch_size=len(sketches[0]),
        tokens=b"".join([item.tokens for item in embedded]),
    )


def model_id(tx: Tx) -> int:
    """The number under which the configured model's vectors are stored; 0 before the first, or without a model."""
    embedder = world(tx).embedder
    return tx.one("kernel.index.model", int, identity=embedder.identity) or 0 if embedder else 0


def has_model(tx: Tx) -> bool:
    """Whether an embedding model is configured."""
    return world(tx).embedder is not None


def _add_model(tx: Tx) -> int:
    embedder = world(tx).embedder
    if embedder is None:
        return 0
    params = {"identity": embedder.identity, "dimensions": embedder.dimensions}
    return tx.one("kernel.index.add_model", int, **params) or 0


def _places(tx: Tx, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    pairs = _json(sorted(wanted))
    found = tx.all("kernel.index.places", _Place, pairs=pairs)
    if len(found) < len(wanted):
        tx.run("kernel.index.add_places", pairs=pairs)
        found = tx.all("kernel.index.places", _Place, pairs=pairs)
    return {(place.space, place.scope): place.id for place in found}


def search(
    tx: Tx, text: str, *,
    within: Sequence[tuple[str, str | None]] | None = None,
    limit: int = CANDIDATES, lexical: bool = True, semantic: bool = True,
) -> list[Hit]:  # fmt: skip
    """Evidence for the documents nearest to `text`: up to `limit` by words and up to `limit` by meaning, in one union.

    `within` names (space, scope) pairs, None as scope meaning every scope of the space; None searches everything.
    """
    settle(tx)
    places = None if within is None else tx.all("kernel.index.places_within", int, pairs=_json([*within]))
    if places == [] or not text.strip():
        return []
    ranks = dict(_lexical(tx, text, places, limit)) if lexical else {}
    found = _semantic(tx, text, places, limit, list(ranks)) if semantic else {}
    missing = [doc for doc in ranks if doc not in found]
    names = {row.doc: row for row in tx.all("kernel.index.names", _Name, ids=_json(missing))} if missing else {}
    hits = [_hit(row, ranks.get(row.doc)) for row in found.values()]
    return hits + [
        Hit(doc, names[doc].space, names[doc].key, ranks[doc], None, None) for doc in missing if doc in names
    ]


class Document(NamedTuple):
    """One indexed memory with its provenance; times are ISO 8601 UTC."""

    doc: int
    space: str
    key: str
    scope: str
    text: str
    dialect: str
    tool: str
    actor: str
    created_at: str
    updated_at: str


def documents(tx: Tx, ids: Sequence[int]) -> dict[int, Document]:
    """The documents of `ids`; those that are gone are left out."""
    settle(tx)
    return {row.doc: row for row in tx.all("kernel.index.documents", Document, ids=_json(ids))}


def find(tx: Tx, keys: Sequence[tuple[str, str]]) -> list[int]:
    """The ids of the documents of the given (space, key) pairs, in that order."""
    settle(tx)
    return tx.all("kernel.index.find", int, keys=_json(keys))


def places_of(tx: Tx, spaces: Sequence[str] | None, scope: str | None) -> list[tuple[str, str | None]]:
    """The (space, scope) pairs that hold anything, of these spaces and this scope; None means any."""
    shown = None if spaces is None else _json(spaces)

    def pair(space: str, held: str) -> tuple[str, str | None]:
        return (space, held)

    return tx.all("kernel.index.places_of", pair, spaces=shown, scope=scope)


def fuse(hits: Sequence[Hit], text_weight: float, meaning_weight: float) -> list[tuple[float, Hit]]:
    """Hits with a score in [0, 1], best first: the weighted sum of each signal over its largest value.

    A signal that found nothing takes no part; ties are broken by the older document.
    """
    top_text = max((hit.text_rank or 0.0 for hit in hits), default=0.0)
    top_meaning = max((hit.similarity or 0.0 for hit in hits), default=0.0)
    total = (text_weight if top_text > 0 else 0.0) + (meaning_weight if top_meaning > 0 else 0.0)
    if not total:
        return [(0.0, hit) for hit in sorted(hits, key=lambda hit: hit.doc)]

    def score(hit: Hit) -> float:
        text = text_weight * (max(0.0, hit.text_rank or 0.0) / top_text) if top_text > 0 else 0.0
        meaning = meaning_weight * (max(0.0, hit.similarity or 0.0) / top_meaning) if top_meaning > 0 else 0.0
        return (text + meaning) / total

    return sorted(((score(hit), hit) for hit in hits), key=lambda pair: (-pair[0], pair[1].doc))


class _Name(NamedTuple):
    doc: int
    space: str
    key: str


class _Near(NamedTuple):
    doc: int
    space: str
    key: str
    similarity: float


class _Ranked(NamedTuple):
    doc: int
    rank: float


class _Count(NamedTuple):
    stem: str
    docs: int


def _hit(row: _Near, rank: float | None) -> Hit:
    distance = math.sqrt(max(0.0, 2.0 - 2.0 * row.similarity))
    return Hit(row.doc, row.space, row.key, rank, distance, row.similarity)


def _lexical(tx: Tx, text: str, places: Sequence[int] | None, limit: int) -> list[_Ranked]:
    text = text.replace("\0", " ")
    words = f"{text} {glued(text)}"
    terms: list[Term] = [*query_words(words, tokenize(tx, words)), *query_grams(text)][:_WORDS]
    memory: Memory = world(tx).memory
    total = tx.one("kernel.index.last_doc", int) or 0
    stems = [term.stem for term in terms if not term.prefix] + [place_word(place) for place in places or ()]

    def count(missing: list[str]) -> dict[str, int]:
        return dict(tx.all("kernel.index.frequencies", _Count, stems=_json(missing)))

    known = memory.frequencies(total, stems, count) if memory.may_learn(tx) else count(stems)
    query = match(terms, known, total, places)
    found = _ranked(tx, query, limit)
    if query and not found:
        # The rare words may have gone since they were counted, or stand in other places only.
        found = _ranked(tx, match_any(terms, known, places), limit)
    return found


def _ranked(tx: Tx, query: str, limit: int) -> list[_Ranked]:
    return tx.all("kernel.index.lexical", _Ranked, query=query, limit=limit) if query else []


def _semantic(
    tx: Tx, text: str, places: Sequence[int] | None, limit: int, also: Sequence[int]
) -> dict[int, _Near]:  # fmt: skip
    model = model_id(tx)
    if not model:
        return {}
    (query,) = tx.embed([text])
    if not query.scale:
        return {}
    near = _nearest(tx, query.vector, model, places, limit)
    if also:
        near |= _scored(tx, "kernel.index.score_docs", query.vector, model, also, len(also))
    return near


def _nearest(
    tx: Tx, vector: bytes, model: int, places: Sequence[int] | None, limit: int
) -> dict[int, _Near]:  # fmt: skip
    wanted = max(_SKETCH_CANDIDATES, 4 * limit)
    near: dict[int, _Near] = {}
    for _ in range(_TRIES):
        coarse = _coarse(tx, vector, model, places, wanted)
        near = _scored(tx, "kernel.index.score_vectors", vector, model, coarse, limit)
        if len(near) >= min(len(coarse), limit):
            break
        _forget(tx, model, coarse)
        wanted *= 4
    return near


def _coarse(tx: Tx, vector: bytes, model: int, places: Sequence[int] | None, wanted: int) -> list[int]:
    """Candidates by sketch; what may be rolled back is looked at through sketches of its own, never kept."""
    memory: Memory = world(tx).memory
    shared = memory.sketches

    def read(last: int) -> list[Row]:
        return tx.all("kernel.index.sketches", Row, after=last, model=model)

    if memory.may_learn(tx):
        shared.extend(read)
        return shared.nearest(vector, wanted, places)
    own = Sketches(lambda: shared.sketcher)
    own.extend(lambda _: read(shared.last))
    return own.nearest(vector, wanted, places) + shared.nearest(vector, wanted, places)


def _forget(tx: Tx, model: int, ids: Sequence[int]) -> None:
    """Drops the sketches of vectors that are gone for everybody."""
    memory: Memory = world(tx).memory
    if memory.may_learn(tx):
        memory.sketches.drop(set(ids).difference(tx.all("kernel.index.live", int, ids=_json(ids), model=model)))


def _scored(tx: Tx, query: str, vector: bytes, model: int, ids: Sequence[int], limit: int) -> dict[int, _Near]:
    rows = tx.all(query, _Near, ids=_json(ids), vector=vector, model=model, limit=limit)
    return {row.doc: row for row in rows}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()

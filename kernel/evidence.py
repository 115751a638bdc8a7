"""Evidence for a search: which documents hold the words, which vectors are near, and a score of both."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from kernel.embed import Embedding
from kernel.errors import Fault
from kernel.sketch import Row, Sketches
from kernel.store import Tx, model, tokenize, world
from kernel.terms import SMALL, Term, glued, grams, match, match_any, place_word, query_grams, query_words

_SKETCH_CANDIDATES = 512
_TRIES = 4
_FREQUENCY_DRIFT = 1.125
_WORDS = 2000
_MOST_ROWS = 0.5
_COMMON_HERE = 0.25
_FEW, _MANY = 50, 20_000
_SLIGHT = 0.01
_KEPT = 100_000


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
        if len(self._frequencies) > _KEPT:
            self._frequencies = {}
        known = self._frequencies
        if missing := [stem for stem in stems if not known.get(stem)]:
            known.update(count(missing))
        return {stem: known.get(stem, 0) for stem in stems}


class Near(NamedTuple):
    """One document near the query: `similarity` is the cosine of the two vectors."""

    doc: int
    space: str
    key: str
    similarity: float


class Ranked(NamedTuple):
    """One document that holds words of the query: `rank` is its BM25, larger is better."""

    doc: int
    rank: float


class _Placed(NamedTuple):
    doc: int
    rank: float
    place: int


class _Count(NamedTuple):
    stem: str
    docs: int


def hit_of(row: Near, rank: float | None) -> Hit:
    """The evidence of one document that has a vector; `rank` is its BM25 where words matched."""
    distance = math.sqrt(max(0.0, 2.0 - 2.0 * row.similarity))
    return Hit(row.doc, row.space, row.key, rank, distance, row.similarity)


def by_words(tx: Tx, text: str, places: Sequence[int] | None, limit: int) -> list[Ranked]:
    """The documents that hold the words of `text`, best BM25 first.

    A word that much of a small place holds, such as the name of somebody who talks there, says little in it though it
    is rare elsewhere: what only such words find comes last.
    """
    terms = _terms(tx, text)
    known, total = _known(tx, terms, places or ())
    telling = _telling(tx, terms, known, total, places or ())
    found = _holding(tx, telling, (known, total), places, limit)
    if len(telling) < len(terms) and len(found) < limit:
        held = {row.doc for row in found}
        most = found[-1].rank / 2 if found else math.inf
        every = _holding(tx, terms, (known, total), places, limit)
        found += [Ranked(row.doc, min(most, row.rank * _SLIGHT)) for row in every if row.doc not in held]
    return found[:limit]


def _holding(
    tx: Tx, terms: Sequence[Term], counts: tuple[dict[str, int], int], places: Sequence[int] | None, limit: int
) -> list[Ranked]:  # fmt: skip
    known, total = counts
    bound = _bound(places or (), known, total)
    looked = None if bound else places
    query = match(terms, known, total, places, bound=bound)
    found = _ranked(tx, query, looked, limit)
    if query and not found:
        # The rare words may have gone since they were counted, or stand in other places only.
        found = _ranked(tx, match_any(terms, known, places, bound=bound), looked, limit)
    return found


def by_words_each(tx: Tx, text: str, places: Sequence[int], limit: int) -> list[Ranked]:
    """The same, with the best `limit` of every place, for about the price of one."""
    terms = _terms(tx, text)
    known, total = _known(tx, terms, places)
    query = match(terms, known, total, places, bound=_bound(places, known, total))
    if not query:
        return []
    found = tx.all("kernel.evidence.lexical_each", _Placed, query=query, places=as_json(places), limit=limit)
    silent = {place for place in places if known.get(place_word(place), 0) > SMALL} - {row.place for row in found}
    rest = [row for place in sorted(silent) for row in by_words(tx, text, [place], limit)]
    return [*(Ranked(row.doc, row.rank) for row in found), *rest]


def _telling(
    tx: Tx, terms: Sequence[Term], known: dict[str, int], total: int, places: Sequence[int]
) -> Sequence[Term]:  # fmt: skip
    """The terms less those that much of the places holds, as long as the places are small; all where none is left."""
    size = sum(known.get(place_word(place), 0) for place in places)
    most = size * _COMMON_HERE
    doubtful = {term.stem: term for term in terms if not term.prefix and known.get(term.stem, 0) > most}
    if not doubtful or not _FEW <= size <= _MANY:
        return terms
    inside = {match_any([term], known, places): stem for stem, term in doubtful.items()}

    def count(missing: list[str]) -> dict[str, int]:
        return dict(tx.all("kernel.evidence.matching", _Count, queries=as_json(missing)))

    memory: Memory = world(tx).memory
    held = memory.frequencies(total, [*inside], count) if memory.may_learn(tx) else count([*inside])
    common = {inside[query] for query, rows in held.items() if rows > most}
    return [term for term in terms if term.stem not in common] or terms


def _known(tx: Tx, terms: Sequence[Term], places: Sequence[int]) -> tuple[dict[str, int], int]:
    """How many documents hold each term and lie in each place, and the largest number of a document."""
    memory: Memory = world(tx).memory
    total = tx.one("kernel.index.last_doc", int) or 0
    stems = [term.stem for term in terms if not term.prefix] + [place_word(place) for place in places]

    def count(missing: list[str]) -> dict[str, int]:
        return dict(tx.all("kernel.evidence.frequencies", _Count, stems=as_json(missing)))

    return memory.frequencies(total, stems, count) if memory.may_learn(tx) else count(stems), total


def _bound(places: Sequence[int], known: dict[str, int], total: int) -> bool:
    """Whether the expression keeps to the places. A word for every place is one more to count and to rank by; where
    most rows are wanted, it is cheaper to look."""
    return sum(known.get(place_word(place), 0) for place in places) <= max(SMALL, total * _MOST_ROWS)


def _terms(tx: Tx, text: str) -> list[Term]:
    text = text.replace("\0", " ")
    words = f"{text} {glued(text)}"
    return [*query_words(words, tokenize(tx, words)), *query_grams(text)][:_WORDS]


def coverage(tx: Tx, query: str, texts: Sequence[str]) -> list[float]:
    """For each text the part of the query's words that it holds, in [0, 1]; 0 for a query without words."""
    # A run of CJK characters counts by its pairs alone: as one word it would hardly ever be there.
    pairs = {term.stem for term in query_grams(query)}
    stems = pairs | {term.stem for term in _terms(tx, query) if not query_grams(term.surface)}
    shares: list[float] = []
    for text in texts:
        plain = text.replace("\0", " ")
        held = {token[2] for token in tokenize(tx, f"{plain} {grams(plain)}")}
        found = sum(stem in held or (stem in pairs and _begins(stem, held)) for stem in stems)
        shares.append(found / len(stems) if stems else 0.0)
    return shares


def _begins(start: str, words: Iterable[str]) -> bool:
    return any(word.startswith(start) for word in words)


def _ranked(tx: Tx, query: str, places: Sequence[int] | None, limit: int) -> list[Ranked]:
    if not query:
        return []
    if places is None:
        return tx.all("kernel.evidence.lexical", Ranked, query=query, limit=limit)
    return tx.all("kernel.evidence.lexical_in", Ranked, query=query, places=as_json(places), limit=limit)


def by_meaning(
    tx: Tx, text: str, places: Sequence[int] | None, limit: int, also: Sequence[int]
) -> dict[int, Near]:  # fmt: skip
    """The documents whose vectors are nearest to that of `text`, and the similarity of those in `also`."""
    number = model_id(tx)
    query = embedded(tx, [text]) if number else None
    if not query or not query[0].scale:
        return {}
    vector = query[0].vector
    near = _nearest(tx, vector, number, places, limit)
    if also:
        near |= _scored(tx, "kernel.evidence.score_docs", vector, number, also, len(also))
    return near


def _nearest(
    tx: Tx, vector: bytes, model: int, places: Sequence[int] | None, limit: int
) -> dict[int, Near]:  # fmt: skip
    wanted = max(_SKETCH_CANDIDATES, 4 * limit)
    near: dict[int, Near] = {}
    for _ in range(_TRIES):
        coarse = _coarse(tx, vector, model, places, wanted)
        near = _scored(tx, "kernel.evidence.score_vectors", vector, model, coarse, limit)
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
        return tx.all("kernel.evidence.sketches", Row, after=last, model=model)

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
        memory.sketches.drop(set(ids).difference(tx.all("kernel.evidence.live", int, ids=as_json(ids), model=model)))


def _scored(tx: Tx, query: str, vector: bytes, model: int, ids: Sequence[int], limit: int) -> dict[int, Near]:
    rows = tx.all(query, Near, ids=as_json(ids), vector=vector, model=model, limit=limit)
    return {row.doc: row for row in rows}


def model_id(tx: Tx) -> int:
    """The number under which the configured model's vectors are stored; 0 before the first, or without a model."""
    known = model(tx)
    return tx.one("kernel.evidence.model", int, identity=known[0]) or 0 if known else 0


def has_model(tx: Tx) -> bool:
    """Whether an embedding model is configured and can be read."""
    return model(tx) is not None


def embedded(tx: Tx, texts: Sequence[str]) -> list[Embedding] | None:
    """The embeddings of `texts`, or None where the model cannot be read: words alone must do then."""
    try:
        return tx.embed(texts)
    except Fault as fault:
        if fault.code != "disabled":
            raise
        return None


def as_json(value: Any) -> str:
    """`value` as the JSON text that `json_each` takes."""
    return msgspec.json.encode(value).decode()

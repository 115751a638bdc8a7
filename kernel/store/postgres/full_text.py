"""Full text on PostgreSQL: words of SQLite's tokenizer in an inverted index of arrays, ranked as FTS5 ranks them."""

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log
from typing import Any, NamedTuple, Protocol

import msgspec

Row = tuple[Any, ...]
Params = Mapping[str, Any]

_K1, _B = 1.2, 0.75  # as in FTS5's bm25() (https://sqlite.org/fts5.html#the_bm25_function)
_LEAST_IDF = 1e-6  # of a term in more than half of the rows, in FTS5
_MOST = 32_767  # a count is a smallint
_PAGE = 500
_NO_LIMIT = 2**31
_HEADER = struct.Struct("<If")  # as kernel/search/bm25.py packs term frequencies
_MOST_TF = 255
_CLAUSE = re.compile(r'(place|\{text grams\}) : \(((?:"(?:[^"]|"")*"|[^")])*)\)')
_PHRASE = re.compile(r'"((?:[^"]|"")*)"(\*?)|quipuplace(\d+)')
_PLACE = "quipuplace"
_json = msgspec.json.Encoder()


class Engine(Protocol):
    """What full text needs of a connection."""

    def query(self, name: str, /, **params: Any) -> list[Row]:
        """The rows of a statement of `sql/postgres/engine`."""
        ...

    def stems(self, text: str, *, trigrams: bool = False) -> list[str]:
        """The tokens of a text."""
        ...


class Match(NamedTuple):
    """An FTS5 expression: what a row has to hold, and the stem of each phrase; that of a partition is only selected."""

    every: list[str] | None
    some: list[list[str]]
    places: list[str] | None
    phrases: list[str]


def place_element(place: object) -> str:
    """How the index holds the partition of a document; no word has a colon."""
    return f":{place}"


def parse(expression: str, stems: Callable[[str], list[str]]) -> Match:
    """Reads an expression as `kernel/search/query.py` writes them: clauses that all hold, of terms in one relation."""
    every: list[str] = []
    some: list[list[str]] = []
    places: list[str] | None = None
    phrases: list[str] = []
    for column, body in _CLAUSE.findall(expression):
        if column == "place":
            places = [place_element(number) for _, _, number in _PHRASE.findall(body)]
            phrases += places
            continue
        held = [_element(word, star, stems) for word, star, _ in _PHRASE.findall(body)]
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


def _rows(
    db: Engine,
    match: Match,
    asked: Sequence[str],
    limit: int = _NO_LIMIT,
    places: Sequence[int] | None = None,
    ids: Sequence[int] | None = None,
) -> list[tuple[int, int, list[int]]]:
    """The newest rows that match: document, number of words, counts of the stems asked for."""
    some = [*match.some, None, None]
    within = [place_element(one) for one in places] if places is not None else match.places
    return db.query(
        "engine.full_text.matching",
        every=match.every,
        some=some[0],
        other=some[1],
        places=within,
        ids=list(ids) if ids is not None else None,
        asked=list(asked),
        limit=limit,
    )


def match_with_tf(db: Engine, params: Params) -> list[Row]:
    """Answers kernel.lexical.match_with_tf, match_with_tf_in and match_with_tf_of."""
    match = parse(params["query"], db.stems)
    asked = match.phrases[params.get("skip", 0) :]
    docs, size = _totals(db)
    mean = (size + docs) / docs - 1 if docs else 0.0
    some = {name: _list(params.get(name)) for name in ("partitions", "ids")}
    rows = _rows(db, match, asked, params.get("limit", _NO_LIMIT), some["partitions"], some["ids"])
    return [
        (doc, _HEADER.pack(length, mean) + bytes([min(_MOST_TF, count) for count in counts]))
        for doc, length, counts in rows
    ]


def ranked(db: Engine, params: Params) -> list[Row]:
    """Answers kernel.lexical.newest_by_bm25, match_by_bm25 and match_by_bm25_in."""
    match = parse(params["query"], db.stems)
    words = [phrase for phrase in match.phrases if not phrase.startswith(":")]
    rows = _rows(db, match, words, params.get("newest", _NO_LIMIT), _list(params.get("partitions")))
    if not rows:
        return []
    docs, size = _totals(db)
    held = dict(db.query("engine.full_text.frequencies", stems=sorted(set(words))))
    weights = [_idf(docs, held.get(word, 0)) for word in words]
    mean = (size + docs) / docs
    scores: list[Row] = []
    for doc, length, counts in rows:
        norm = _K1 * (1.0 - _B + _B * (length + 1) / mean)
        score = 0.0
        for weight, count in zip(weights, counts, strict=True):
            score += weight * ((count * (_K1 + 1.0)) / (count + norm))
        scores.append((doc, score))
    scores.sort(key=lambda row: (-row[1], row[0]))
    return scores[: params.get("best", len(scores))]


def _idf(docs: int, hits: int) -> float:
    weight = log((docs - hits + 0.5) / (hits + 0.5))
    return weight if weight > 0.0 else _LEAST_IDF


def document_frequencies(db: Engine, params: Params) -> list[Row]:
    """Answers kernel.lexical.document_frequencies and kernel.past.document_frequencies."""
    stems: list[str] = _list(params["stems"]) or []
    places = {place_element(stem[len(_PLACE) :]): stem for stem in stems if stem.startswith(_PLACE)}
    found = db.query("engine.full_text.frequencies", stems=[*stems, *places])
    counts: Counter[str] = Counter()
    for stem, count in found:
        counts[places[stem] if stem in places else str(stem)] += count
    return [(stem, counts[stem]) for stem in stems if counts[stem]]


def insert(db: Engine, params: Params) -> list[Row]:
    """Answers kernel.index.fts_insert."""
    _add(db, db.query("engine.full_text.documents", ids=params["ids"]))
    return []


def _add(db: Engine, documents: Iterable[Row]) -> None:
    rows: list[Row] = []
    for doc, text, grams, place in documents:
        words = db.stems(text) + db.stems(grams)
        counts = Counter(words)
        counts.update(f"{word[0]}*" for word in words if not word.isascii())
        held = [min(_MOST, count) for count in counts.values()]
        rows.append((doc, len(words), [*counts, place_element(place)], [*held, 1]))
    if rows:
        db.query("engine.full_text.add", rows=_json.encode(rows).decode())
        db.query("engine.full_text.count", docs=len(rows), size=sum(row[1] for row in rows))


def delete(db: Engine, params: Params) -> list[Row]:
    """Answers kernel.index.fts_delete."""
    sizes = [size for (size,) in db.query("engine.full_text.delete", ids=params["ids"])]
    if sizes:
        db.query("engine.full_text.count", docs=-len(sizes), size=-sum(sizes))
    return []


def rebuild(db: Engine, _params: Params) -> list[Row]:
    """Answers kernel.consistency.rebuild_full_text."""
    db.query("engine.full_text.clear")
    db.query("engine.full_text.clear_totals")
    after = 0
    while page := db.query("engine.full_text.documents_after", after=after, limit=_PAGE):
        _add(db, page)
        after = page[-1][0]
    return []


def insert_parts(db: Engine, params: Params) -> list[Row]:
    """Answers kernel.index.parts_insert."""
    _add_parts(db, db.query("engine.full_text.part_texts", ids=params["ids"]))
    return []


def _add_parts(db: Engine, texts: Iterable[Row]) -> None:
    rows = [(doc, sorted(set(db.stems(text, trigrams=True)))) for doc, text in texts]
    if rows:
        db.query("engine.full_text.add_parts", rows=_json.encode(rows).decode())


def rebuild_parts(db: Engine, _params: Params) -> list[Row]:
    """Answers kernel.consistency.rebuild_parts."""
    db.query("engine.full_text.clear_parts")
    after = 0
    while page := db.query("engine.full_text.part_texts_after", after=after, limit=_PAGE):
        _add_parts(db, page)
        after = page[-1][0]
    return []


def match_trigrams(db: Engine, params: Params) -> list[Row]:
    """Answers kernel.parts.match_trigrams."""
    wanted = {
        trigram
        for word, _, _ in _PHRASE.findall(params["query"])
        for trigram in db.stems(word.replace('""', '"'), trigrams=True)
    }
    return db.query("engine.full_text.holding_parts", trigrams=sorted(wanted), partitions=params["partitions"])


def _named(name: str) -> Callable[[Engine, Params], list[Row]]:
    def answer(db: Engine, params: Params) -> list[Row]:
        return db.query(name, **params)

    return answer


def nothing(_db: Engine, _params: Params) -> list[Row]:
    """Answers what only SQLite has to do."""
    return []


def _totals(db: Engine) -> tuple[int, int]:
    ((docs, size),) = db.query("engine.full_text.totals")
    return docs, size


def _list(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


ANSWERED: Mapping[str, Callable[[Any, Params], list[Row]]] = {
    "kernel.compact.optimize_full_text": nothing,
    "kernel.compact.optimize_parts": nothing,
    "kernel.consistency.check_full_text": _named("engine.full_text.differing"),
    "kernel.consistency.check_parts": _named("engine.full_text.differing_parts"),
    "kernel.consistency.rebuild_full_text": rebuild,
    "kernel.consistency.rebuild_parts": rebuild_parts,
    "kernel.index.fts_insert": insert,
    "kernel.index.fts_delete": delete,
    "kernel.index.parts_insert": insert_parts,
    "kernel.index.parts_delete": _named("engine.full_text.delete_parts"),
    "kernel.lexical.document_frequencies": document_frequencies,
    "kernel.lexical.match_by_bm25": ranked,
    "kernel.lexical.match_by_bm25_in": ranked,
    "kernel.lexical.match_with_tf": match_with_tf,
    "kernel.lexical.match_with_tf_in": match_with_tf,
    "kernel.lexical.match_with_tf_of": match_with_tf,
    "kernel.lexical.newest_by_bm25": ranked,
    "kernel.parts.match_trigrams": match_trigrams,
    "kernel.past.document_frequencies": document_frequencies,
}

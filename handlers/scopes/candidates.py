"""Which entries a query is about: those its scopes see, by text, tags and relations, and what speaks for each."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from handlers.scopes import scoring
from handlers.scopes.entry_kinds import KINDS, indexed
from handlers.scopes.results import VersionRow
from kernel.search import index
from kernel.store.transaction import Tx

_WEIGHTS = index.Weights(words=0.6, meaning=0.4)
_WIDER = 8
_ORDER: Mapping[str, int] = {name: number for number, name in enumerate(KINDS)}


class Candidate(NamedTuple):
    """An entry that may be in the answer, with the version it would be shown with.

    `indexed` says whether that version is what the index holds.
    """

    seq: int
    id: str
    kind: str
    scope: str
    priority: int | None
    created_at: str
    version_id: str
    expired: int
    indexed: int


class Tagging(NamedTuple):
    """The tags asked for, by id: any of `include` unless it is None, one of each of `require`, none of `exclude`."""

    include: frozenset[str] | None = None
    require: tuple[frozenset[str], ...] = ()
    exclude: frozenset[str] = frozenset()


class Ask(NamedTuple):
    """What a query wants: kinds, scopes nearest first, the time `at` to read at, and filters.

    `now` is that time or the present; `related` are the ids a relation leads to; `threshold` is None for a search by
    words alone.
    """

    kinds: Sequence[str]
    scopes: Sequence[str]
    now: str
    limit: int
    at: str | None = None
    inactive: bool = False
    shadowed: bool = False
    tagging: Tagging = Tagging()
    related: frozenset[str] | None = None
    text: str = ""
    threshold: float | None = None


class Pool(NamedTuple):
    """Candidates, how many entries there are in all, and what the score needs of each by its id.

    `marks` counts the tags of `include` that an entry has. `cut` says that more entries are near in meaning than were
    looked at, so that `total` leaves them out.
    """

    candidates: Sequence[Candidate]
    total: int
    marks: Mapping[str, int] = {}
    relevance: Mapping[str, float] = {}
    cut: bool = False


class Ranked(NamedTuple):
    """A candidate with its score, in fields that sort as shown: the expired last, of equals the newer first."""

    expired: int
    minus_score: float
    age_days: float
    kind: int
    depth: int
    seq: int
    candidate: Candidate


class _Words(NamedTuple):
    id: str
    kind: str
    name: str
    version: VersionRow


def rank(ask: Ask, pool: Pool) -> list[Ranked]:
    """Candidates with their scores, best first."""
    places = {scope: (depth, scoring.standing(depth, len(ask.scopes))) for depth, scope in enumerate(ask.scopes)}
    now, related = datetime.fromisoformat(ask.now), ask.related is not None
    ranked: list[Ranked] = []
    for item in pool.candidates:
        depth, near = places[item.scope]
        age = scoring.age_days(item.created_at, now)
        score = scoring.score(
            near, age, item.priority, pool.marks.get(item.id, 0), related=related, relevance=pool.relevance.get(item.id)
        )
        ranked.append(Ranked(item.expired, -score, age, _ORDER[item.kind], depth, item.seq, item))
    ranked.sort()
    return ranked


def gather(tx: Tx, ask: Ask) -> Pool:
    """The candidates of a query; without a text or a filter only those that can come first, counted all the same."""
    if ask.text:
        return _by_text(tx, ask)
    if _plain(ask) and ask.at is None and not ask.inactive:
        return _foremost(tx, ask)
    found, marks = _select(tx, ask, _driven(tx, ask))
    return Pool(found, len(found), marks)


def _plain(ask: Ask) -> bool:
    """Whether no filter asks for something that an entry must have."""
    return ask.related is None and ask.tagging.include is None and not ask.tagging.require


def _foremost(tx: Tx, ask: Ask) -> Pool:
    """What can be among the first `limit` of any kind.

    Scores of one scope fall in the order of the column standing while entries are fresh, and of priority after that, so
    the first of either order are enough.
    """
    excluded = sorted(ask.tagging.exclude) if ask.tagging.exclude else None
    where = {"scopes": ask.scopes, "shadowed": ask.shadowed, "excluded": excluded, "limit": ask.limit}
    found = tx.all("scopes.query.by_score", Candidate, kinds=ask.kinds, now=ask.now, expired=0, **where)
    if "guideline" in ask.kinds:
        found += tx.all("scopes.query.by_priority", Candidate, **where)
    if "knowledge" in ask.kinds and sum(item.kind == "knowledge" for item in found) < ask.limit:
        found += tx.all("scopes.query.by_score", Candidate, kinds=["knowledge"], now=ask.now, expired=1, **where)
    return Pool(list(dict.fromkeys(found)), _total(tx, ask))


def _total(tx: Tx, ask: Ask) -> int:
    """How many there are: the index holds exactly the active entries, so it can count them."""
    total = index.count(tx, _places(ask))
    if not ask.shadowed:
        total -= tx.one("scopes.query.count_shadowed", int, kinds=ask.kinds, scopes=ask.scopes) or 0
    if ask.tagging.exclude:
        marked = tx.all("scopes.query.ids_with_tags", str, tags=sorted(ask.tagging.exclude))
        total -= len(_select(tx, ask._replace(tagging=Tagging()), marked)[0])
    return total


def _driven(tx: Tx, ask: Ask) -> Collection[str]:
    """The ids that the narrowest filter leaves, or all there are in the scopes."""
    if ask.related is not None:
        return ask.related
    wanted = ask.tagging.require[:1] or ((ask.tagging.include,) if ask.tagging.include is not None else ())
    if wanted:
        return tx.all("scopes.query.ids_with_tags", str, tags=sorted(wanted[0]))
    return tx.all("scopes.query.entry_ids", str, kinds=ask.kinds, scopes=ask.scopes)


def _select(tx: Tx, ask: Ask, ids: Collection[str]) -> tuple[list[Candidate], dict[str, int]]:
    """Those of the ids that pass every filter but the text, and how many of the tags of `include` each has."""
    found = [item for item in _rows(tx, ask, ids) if item.kind in ask.kinds and item.scope in ask.scopes]
    tagging = ask.tagging
    if tagging == Tagging():
        return found, {}
    held = _marks(tx, tagging, [item.id for item in found])
    found = [item for item in found if _fits(tagging, held[item.id])]
    return found, {item.id: len(held[item.id].intersection(tagging.include or ())) for item in found}


def _rows(tx: Tx, ask: Ask, ids: Collection[str]) -> list[Candidate]:
    keys = [key for key in ids if ask.related is None or key in ask.related]
    seen = {"ids": keys, "scopes": ask.scopes, "inactive": ask.inactive, "shadowed": ask.shadowed}
    if ask.at is None:
        return tx.all("scopes.query.rows", Candidate, now=ask.now, **seen)
    return tx.all("scopes.query.rows_at", Candidate, at=ask.at, **seen)


def _marks(tx: Tx, tagging: Tagging, ids: Sequence[str]) -> dict[str, set[str]]:
    asked = sorted((tagging.include or frozenset()).union(tagging.exclude, *tagging.require))
    held: dict[str, set[str]] = {entry_id: set() for entry_id in ids}
    for entry_id, tag_id in tx.all("scopes.query.tags_of", _pair, ids=ids, tags=asked):
        held[entry_id].add(tag_id)
    return held


def _fits(tagging: Tagging, held: Collection[str]) -> bool:
    return (
        tagging.exclude.isdisjoint(held)
        and all(not one.isdisjoint(held) for one in tagging.require)
        and (tagging.include is None or not tagging.include.isdisjoint(held))
    )


def _by_text(tx: Tx, ask: Ask) -> Pool:
    """What holds the words, and what is near in meaning: the nearest hundred, or more where filters leave too few."""
    within, width = _places(ask), max(index.CANDIDATES, ask.limit)
    narrow = None if _plain(ask) else [item.id for item in _select(tx, ask, _driven(tx, ask))[0]]
    if narrow == []:
        return Pool([], 0)
    first = index.search(tx, ask.text, within=within, limit=width, semantic=ask.threshold is not None, all_matches=True)
    hits = {hit.id: hit for hit in first}
    while True:
        near = _near(hits.values(), ask.threshold)
        found, marks = _select(tx, ask, [key for key, hit in hits.items() if hit.text_rank is not None or key in near])
        found = [item for item in found if item.indexed]
        cut = len(near) >= width
        if not cut or sum(item.id in near for item in found) >= ask.limit:
            break
        width *= _WIDER
        hits |= {hit.id: hit for hit in index.search(tx, ask.text, within=within, limit=width, lexical=False)} | hits
    relevance = {one.hit.id: one.score for one in index.fuse([*hits.values()], _WEIGHTS)}
    worded = any(hit.text_rank is not None for hit in hits.values())
    return _completed(tx, ask, Pool(found, len(found), marks, relevance, cut), narrow, worded=worded)


def _places(ask: Ask) -> list[tuple[str, str | None]]:
    return [(KINDS[kind].space, scope) for kind in ask.kinds for scope in ask.scopes]


def _near(hits: Iterable[index.Hit], threshold: float | None) -> set[str]:
    if threshold is None:
        return set()
    least = scoring.cosine(threshold)
    return {hit.id for hit in hits if hit.similarity is not None and hit.similarity >= least}


def _completed(tx: Tx, ask: Ask, pool: Pool, narrow: Sequence[str] | None, *, worded: bool) -> Pool:
    """The pool with what only rows can tell: what the index does not hold, or parts of words where all else fails.

    Of the entries `narrow` alone, unless it is None; parts of words are not looked for where the index has the words.
    """
    nothing = not pool.candidates and not worded
    if not nothing and ask.at is None and not ask.inactive:
        return pool
    rows = _unindexed(tx, ask, narrow, everything=nothing)
    words = ask.text.casefold().split()
    ids = [row.id for row in rows if _holds(row, words)]
    more, marks = _select(tx, ask, ids)
    known = {item.id for item in pool.candidates}
    found = [*pool.candidates, *(item for item in more if item.id not in known)]
    relevance = {item.id: _WEIGHTS.words for item in more} | dict(pool.relevance)
    return Pool(found, len(found), {**pool.marks, **marks}, relevance, pool.cut)


def _unindexed(tx: Tx, ask: Ask, narrow: Sequence[str] | None, *, everything: bool) -> list[_Words]:
    if narrow is not None:
        return tx.all("scopes.query.unindexed_of", _words, ids=narrow, at=ask.at, all=everything)
    return tx.all("scopes.query.unindexed", _words, kinds=ask.kinds, scopes=ask.scopes, at=ask.at, all=everything)


def _holds(row: _Words, words: Sequence[str]) -> bool:
    text = indexed(KINDS[row.kind], row.name, row.version._asdict()).casefold()
    return all(word in text for word in words)


def _words(entry_id: str, kind: str, name: str, *version: Any) -> _Words:
    return _Words(entry_id, kind, name, VersionRow(*version))


def _pair(entry_id: str, tag_id: str) -> tuple[str, str]:
    return entry_id, tag_id

"""The candidates of a query: entries visible in its scopes, by text, tags and relations, with their evidence."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from handlers.scopes.entry_kinds import KINDS, index_text
from handlers.scopes.results import VersionRow
from kernel.core.times import EPOCH, stored_time
from kernel.search import index
from kernel.search.index import ranked
from kernel.store.transaction import Tx

# The points and the days are those of the original.
RELATION_POINTS = 5.0
POINTS_PER_TAG = 3.0
MAX_TAGS_COUNTED = 3
SCOPE_POINTS = 2.0
TEXT_POINTS = 1.0
PRIORITY_POINTS = 1.5
RECENCY_POINTS = 0.5
FRESH_DAYS = 30.0
_MAX_POINTS = RELATION_POINTS + POINTS_PER_TAG * MAX_TAGS_COUNTED + SCOPE_POINTS + TEXT_POINTS + PRIORITY_POINTS
# With a text, relevance counts 70 % and all points but recency 30 %, on a scale of 10.
_RELEVANCE_SHARE = 0.7
_POINTS_SHARE = 0.3
_MAX_TEXT_SCORE = 10.0
_DAY = timedelta(days=1)
_SCORE_DIGITS, STRENGTH_DIGITS = 4, 2
# The cosine whose similarity is .5, and the scale of the logistic: at .7, a cosine of .2, 17 of 20 questions find their
# answer in other words; at a cosine of .4 it was 8.
_EVEN_COSINE, _COSINE_SCALE = 0.12, 0.094


def scope_points(depth: int, levels: int) -> float:
    return SCOPE_POINTS * (levels - depth) / levels


def score(
    scope: float,
    age_days: float,
    priority: int | None = None,
    tags: int = 0,
    *,
    related: bool = False,
    relevance: float | None = None,
) -> float:
    """Return the score of an entry, higher is better: up to 19 without a text, up to 10.5 with a text.

    `scope` are the `scope_points` of its scope; `tags` is the number of requested tags it has; `relevance` in [0, 1] is
    the fused evidence of the text, None without a text.
    """
    rest = scope + PRIORITY_POINTS * (priority or 0) / 100
    if tags:
        rest += POINTS_PER_TAG * min(tags, MAX_TAGS_COUNTED)
    if related:
        rest += RELATION_POINTS
    if relevance is not None:
        rest = _MAX_TEXT_SCORE * (_RELEVANCE_SHARE * relevance + _POINTS_SHARE * (rest + TEXT_POINTS) / _MAX_POINTS)
    freshness = min(1.0, max(0.0, 1 - age_days / FRESH_DAYS))
    return round(rest + RECENCY_POINTS * freshness, _SCORE_DIGITS)


def age_days(created_at: str, now: datetime) -> float:
    return (now - stored_time(created_at)) / _DAY


def cosine(similarity: float) -> float:
    """Return the cosine for a similarity in [0, 1], by a logistic: .5 is between related and unrelated texts."""
    if not 0 < similarity < 1:
        return 2 * similarity - 1
    return _EVEN_COSINE + _COSINE_SCALE * math.log(similarity / (1 - similarity))


_ALL_WORDS = 0.6  # the relevance of an entry that the index cannot rank, but holds each word of the text
_WIDENING_FACTOR = 8  # a filter that leaves too few of the nearest hits multiplies their number by this
# `standing` of an entry without a priority is the Julian day of its creation.
_EPOCH_JULIAN_DAY = 2440587.5
_ROUNDING_DAYS = 1e-6
_KIND_ORDER: Mapping[str, int] = {name: number for number, name in enumerate(KINDS)}


class Candidate(NamedTuple):
    """An entry that may be in the result; `indexed` if the index holds the version to show."""

    seq: int
    id: str
    kind: str
    scope: str
    priority: int | None
    created_at: str
    expired: int
    indexed: int


class TagIds(NamedTuple):
    """A filter by tag ids: any of `include` unless it is None, any of each set of `require`, none of `exclude`."""

    include: frozenset[str] | None = None
    require: tuple[frozenset[str], ...] = ()
    exclude: frozenset[str] = frozenset()


class EntryQuery(NamedTuple):
    """A validated query: kinds, scopes nearest first, and filters.

    `as_of` is the time to read at, None for the present; `now` is that time or the present. `related_ids` are the
    entries that a relation leads to. `threshold` in [0, 1] is the least similarity, None for a search by words alone.
    """

    kinds: Sequence[str]
    scopes: Sequence[str]
    now: str
    limit: int
    as_of: str | None = None
    include_inactive: bool = False
    include_shadowed: bool = False
    include_expired: bool = False
    tags: TagIds = TagIds()
    related_ids: frozenset[str] | None = None
    text: str = ""
    threshold: float | None = None


class CandidateSet(NamedTuple):
    """Candidates, the total number of matches, and the evidence for the score by entry id.

    `tag_counts` is the number of tags of `include` that an entry has. `truncated` means that more entries are near in
    meaning than were examined; `total` does not count them. `expired` is the number of matches that are left out since
    their validity has ended. `strengths` are how likely the nearest entries answer the text.
    """

    candidates: Sequence[Candidate]
    total: int
    tag_counts: Mapping[str, int] = {}
    relevance: Mapping[str, float] = {}
    truncated: bool = False
    expired: int = 0
    strengths: Mapping[str, float] = {}


class RankedCandidate(NamedTuple):
    """A candidate with its score; sorts in the order of the result: expired last, best score first, newest first."""

    expired: int
    minus_score: float
    age_days: float
    kind: int
    depth: int
    seq: int
    candidate: Candidate


def rank(query: EntryQuery, pool: CandidateSet) -> list[RankedCandidate]:
    levels = {scope: (depth, scope_points(depth, len(query.scopes))) for depth, scope in enumerate(query.scopes)}
    now, is_related = datetime.fromisoformat(query.now), query.related_ids is not None
    ranking: list[RankedCandidate] = []
    for item in pool.candidates:
        depth, nearness = levels[item.scope]
        age = age_days(item.created_at, now)
        points = score(
            nearness,
            age,
            item.priority,
            pool.tag_counts.get(item.id, 0),
            related=is_related,
            relevance=pool.relevance.get(item.id),
        )
        ranking.append(RankedCandidate(item.expired, -points, age, _KIND_ORDER[item.kind], depth, item.seq, item))
    ranking.sort()
    return ranking


def find_candidates(tx: Tx, query: EntryQuery) -> CandidateSet:
    """Return the candidates of a query; without a text or a filter only those that can be on the page, with the full
    count. Knowledge whose validity has ended is counted and left out, unless the query includes it.
    """
    pool = _find(tx, query)
    if query.include_expired:
        return pool
    valid = [item for item in pool.candidates if not item.expired]
    count = len(pool.candidates) - len(valid)
    return pool._replace(candidates=valid, total=pool.total - count, expired=pool.expired + count)


def _find(tx: Tx, query: EntryQuery) -> CandidateSet:
    if query.text:
        return _find_by_text(tx, query)
    if _is_unfiltered(query) and not query.include_inactive:
        return _find_top(tx, query) if query.as_of is None else _find_top_as_of(tx, query, query.as_of)
    items, tag_counts = _visible(tx, query, _narrowest_ids(tx, query))
    return CandidateSet(items, len(items), tag_counts)


def _is_unfiltered(query: EntryQuery) -> bool:
    return query.related_ids is None and query.tags.include is None and not query.tags.require


def _find_top(tx: Tx, query: EntryQuery) -> CandidateSet:
    """Return every entry that can be among the first `limit` of any kind.

    Within one scope, entries sort by the column `standing` (which includes recency) while they are fresh, and by
    priority afterwards, so the first of both orders are enough.
    """
    excludes = sorted(query.tags.exclude) if query.tags.exclude else None
    params = {"scopes": query.scopes, "shadowed": query.include_shadowed, "excluded": excludes, "limit": query.limit}
    items = tx.all("scopes.query.by_score", Candidate, kinds=query.kinds, now=query.now, expired=0, **params)
    if "guideline" in query.kinds:
        items += tx.all("scopes.query.by_priority", Candidate, **params)
    expired = 0
    if "knowledge" in query.kinds and not query.include_expired:
        where = {"scopes": query.scopes, "shadowed": query.include_shadowed, "excluded": excludes, "now": query.now}
        expired = tx.one("scopes.query.count_expired", int, **where) or 0
    # Expired entries rank last, so they are read only if the others do not fill the page.
    elif "knowledge" in query.kinds and sum(item.kind == "knowledge" for item in items) < query.limit:
        items += tx.all("scopes.query.by_score", Candidate, kinds=["knowledge"], now=query.now, expired=1, **params)
    return CandidateSet(list(dict.fromkeys(items)), _count(tx, query) - expired, expired=expired)


def _find_top_as_of(tx: Tx, query: EntryQuery, at: str) -> CandidateSet:
    """Return the same as of a time: the first unchanged entries of both orders, and all that have changed since."""
    where: dict[str, Any] = {"scopes": query.scopes, "shadowed": query.include_shadowed, "at": at}
    excluded_tags = sorted(query.tags.exclude) if query.tags.exclude else None
    params = {**where, "excluded": excluded_tags, "limit": query.limit}
    top = (stored_time(at) - EPOCH) / timedelta(days=1) + _EPOCH_JULIAN_DAY + _ROUNDING_DAYS
    items = tx.all("scopes.query.by_score_as_of", Candidate, kinds=query.kinds, expired=0, top=top, **params)
    if "guideline" in query.kinds:
        items += tx.all("scopes.query.by_priority_as_of", Candidate, **params)
    expired = 0
    if "knowledge" in query.kinds and not query.include_expired:
        expired = tx.one("scopes.query.count_expired_as_of", int, excluded=excluded_tags, **where) or 0
    elif "knowledge" in query.kinds and sum(item.kind == "knowledge" for item in items) < query.limit:
        items += tx.all("scopes.query.by_score_as_of", Candidate, kinds=["knowledge"], expired=1, top=top, **params)
    deactivated_ids = tx.all("scopes.query.deactivated_since", str, kinds=query.kinds, scopes=query.scopes, at=at)
    total = tx.one("scopes.query.count_as_of", int, kinds=query.kinds, scopes=query.scopes, at=at) or 0
    if not query.include_shadowed:
        total -= tx.one("scopes.query.count_shadowed_as_of", int, kinds=query.kinds, scopes=query.scopes, at=at) or 0
    total -= tx.one("scopes.query.count_versionless", int, kinds=query.kinds, **where) or 0
    total += len(_visible(tx, query._replace(tags=TagIds()), deactivated_ids)[0]) - _count_excluded(tx, query)
    changed_ids = tx.all("scopes.query.changed_since", str, kinds=query.kinds, scopes=query.scopes, at=at)
    items += _visible(tx, query, [*deactivated_ids, *changed_ids])[0]
    return CandidateSet(list(dict.fromkeys(items)), total - expired, expired=expired)


def _count(tx: Tx, query: EntryQuery) -> int:
    """Return the number of matches: the index holds exactly the active entries, so it can count them."""
    total = index.count(tx, _partitions(query))
    if not query.include_shadowed:
        total -= tx.one("scopes.query.count_shadowed", int, kinds=query.kinds, scopes=query.scopes) or 0
    return total - _count_excluded(tx, query)


def _count_excluded(tx: Tx, query: EntryQuery) -> int:
    if not query.tags.exclude:
        return 0
    ids = tx.all("scopes.query.ids_with_tags", str, tags=sorted(query.tags.exclude))
    return len(_visible(tx, query._replace(tags=TagIds()), ids)[0])


def _narrowest_ids(tx: Tx, query: EntryQuery) -> Collection[str]:
    if query.related_ids is not None:
        return query.related_ids
    required_tags = query.tags.require[:1] or ((query.tags.include,) if query.tags.include is not None else ())
    if required_tags:
        return tx.all("scopes.query.ids_with_tags", str, tags=sorted(required_tags[0]))
    return tx.all("scopes.query.entry_ids", str, kinds=query.kinds, scopes=query.scopes)


def _find_by_text(tx: Tx, query: EntryQuery) -> CandidateSet:
    """Return every entry that holds the words, and the nearest hundred by meaning, or more if filters leave too few."""
    within, width = _partitions(query), max(index.CANDIDATES, query.limit)
    filtered_items = None if _is_unfiltered(query) else _visible(tx, query, _narrowest_ids(tx, query))[0]
    filtered_ids = None if filtered_items is None else [item.id for item in filtered_items]
    if filtered_ids == []:
        return CandidateSet([], 0)
    text_hits = index.search(tx, query.text, within=within, semantic=False, all_matches=True)
    ranks = {hit.id: hit.text_rank for hit in text_hits if hit.text_rank is not None}
    while True:
        best = ranked(tx, query.text, within=within, limit=width, semantic=query.threshold is not None, whole=True)
        similar = _similar_ids((item.hit for item in best), query.threshold)
        items, tag_counts = _visible(tx, query, [*ranks, *(similar - ranks.keys())])
        items = [item for item in items if item.indexed]
        is_truncated = len(similar) >= width
        shown = (item for item in items if query.include_expired or not item.expired)
        if not is_truncated or sum(item.id in similar for item in shown) >= query.limit:
            break
        width *= _WIDENING_FACTOR
    strengths = {item.hit.id: item.strength for item in best}
    pool = CandidateSet(items, len(items), tag_counts, _relevance(best, ranks), is_truncated, strengths=strengths)
    return _add_substring_matches(tx, query, pool, filtered_ids, text_matched=bool(ranks))


def _relevance(best: Sequence[index.Scored], ranks: Mapping[str, float]) -> dict[str, float]:
    """Return the evidence of each entry: that of all signals for the best, that of their words for the others."""
    scores = {item.hit.id: item.score for item in best}
    most = index.Weights().words * min(scores.values(), default=1.0) / max(ranks.values(), default=1.0)
    return {key: most * rank for key, rank in ranks.items()} | scores


def _partitions(query: EntryQuery) -> list[tuple[str, str | None]]:
    return [(KINDS[kind].space, scope) for kind in query.kinds for scope in query.scopes]


def _similar_ids(hits: Iterable[index.Hit], threshold: float | None) -> set[str]:
    if threshold is None:
        return set()
    min_cosine = cosine(threshold)
    return {hit.id for hit in hits if hit.similarity is not None and hit.similarity >= min_cosine}


def _add_substring_matches(
    tx: Tx, query: EntryQuery, pool: CandidateSet, filtered_ids: Sequence[str] | None, *, text_matched: bool
) -> CandidateSet:
    """Return the pool with entries that hold each word of the text as a substring.

    All inactive entries and older versions, which only the rows hold; those of the index only if nothing
    else matches and the index holds none of the words. `filtered_ids` limits the rows to be read, unless it is None.
    """
    words = query.text.split()
    unindexed_ids = _unindexed_ids(tx, query, filtered_ids, words)
    nothing = not pool.candidates and not text_matched
    indexed_ids = set(index.containing(tx, words, _partitions(query))) if nothing else set[str]()
    if not unindexed_ids and not indexed_ids:
        return pool
    more, tag_counts = _visible(tx, query, [*unindexed_ids | indexed_ids])
    more = [item for item in more if item.id in (indexed_ids if item.indexed else unindexed_ids)]
    ids = {item.id for item in pool.candidates}
    items = [*pool.candidates, *(item for item in more if item.id not in ids)]
    relevance = {item.id: _ALL_WORDS for item in more} | dict(pool.relevance)
    return pool._replace(
        candidates=items, total=len(items), tag_counts={**pool.tag_counts, **tag_counts}, relevance=relevance
    )


def _unindexed_ids(tx: Tx, query: EntryQuery, filtered_ids: Sequence[str] | None, words: Sequence[str]) -> set[str]:
    """Return the entries that hold the words in a version which the index does not have."""
    if query.as_of is None and not query.include_inactive:
        return set()
    if filtered_ids is None:
        where: dict[str, Any] = {"kinds": query.kinds, "scopes": query.scopes}
        texts = tx.all("scopes.query.unindexed", _folded_text, at=query.as_of, **where)
    else:
        texts = tx.all("scopes.query.unindexed_by_ids", _folded_text, ids=filtered_ids, at=query.as_of)
    folded_words = [word.casefold() for word in words]
    return {entry_id for entry_id, text in texts if all(word in text for word in folded_words)}


def _folded_text(entry_id: str, kind: str, name: str, *version: Any) -> tuple[str, str]:
    return entry_id, index_text(KINDS[kind], name, VersionRow(*version)._asdict()).casefold()


def _visible(tx: Tx, query: EntryQuery, ids: Collection[str]) -> tuple[list[Candidate], dict[str, int]]:
    items = [item for item in _load(tx, query, ids) if item.kind in query.kinds and item.scope in query.scopes]
    tags = query.tags
    if tags == TagIds():
        return items, {}
    tags_of = _tags_of_entries(tx, tags, [item.id for item in items])
    items = [item for item in items if _matches_tags(tags, tags_of[item.id])]
    return items, {item.id: len(tags_of[item.id].intersection(tags.include or ())) for item in items}


def _load(tx: Tx, query: EntryQuery, ids: Collection[str]) -> list[Candidate]:
    keys = [key for key in ids if query.related_ids is None or key in query.related_ids]
    params = {
        "ids": keys,
        "scopes": query.scopes,
        "inactive": query.include_inactive,
        "shadowed": query.include_shadowed,
    }
    if query.as_of is None:
        return tx.all("scopes.query.entries", Candidate, now=query.now, **params)
    return tx.all("scopes.query.entries_as_of", Candidate, at=query.as_of, **params)


def _tags_of_entries(tx: Tx, tags: TagIds, ids: Sequence[str]) -> dict[str, set[str]]:
    relevant = sorted((tags.include or frozenset()).union(tags.exclude, *tags.require))
    tags_of: dict[str, set[str]] = {entry_id: set() for entry_id in ids}
    for entry_id, tag_id in tx.rows("scopes.query.matching_tags", ids=ids, tags=relevant):
        tags_of[entry_id].add(tag_id)
    return tags_of


def _matches_tags(tags: TagIds, ids: Collection[str]) -> bool:
    return (
        tags.exclude.isdisjoint(ids)
        and all(not choices.isdisjoint(ids) for choices in tags.require)
        and (tags.include is None or not tags.include.isdisjoint(ids))
    )

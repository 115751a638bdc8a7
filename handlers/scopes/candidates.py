"""The candidates of a query: entries visible in its scopes, by text, tags and relations, with their evidence."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from handlers.scopes import scoring
from handlers.scopes.entry_kinds import KINDS, index_text
from handlers.scopes.filters import Candidate, EntryQuery, TagIds, visible
from handlers.scopes.results import VersionRow
from kernel.core.times import EPOCH, stored_time
from kernel.search import index
from kernel.search.ranked import ranked
from kernel.store.transaction import Tx

_ALL_WORDS = 0.6  # the relevance of an entry that the index cannot rank, but holds each word of the text
_WIDENING_FACTOR = 8  # a filter that leaves too few of the nearest hits multiplies their number by this
# `standing` of an entry without a priority is the Julian day of its creation.
_EPOCH_JULIAN_DAY = 2440587.5
_ROUNDING_DAYS = 1e-6
_KIND_ORDER: Mapping[str, int] = {name: number for number, name in enumerate(KINDS)}


class CandidateSet(NamedTuple):
    """Candidates, the total number of matches, and the evidence for the score by entry id.

    `tag_counts` is the number of tags of `include` that an entry has. `truncated` means that more entries are near in
    meaning than were examined; `total` does not count them.
    """

    candidates: Sequence[Candidate]
    total: int
    tag_counts: Mapping[str, int] = {}
    relevance: Mapping[str, float] = {}
    truncated: bool = False


class RankedCandidate(NamedTuple):
    """A candidate with its score; sorts in the order of the result: expired last, best score first, newest first."""

    expired: int
    minus_score: float
    age_days: float
    kind: int
    depth: int
    seq: int
    candidate: Candidate


class _EntryText(NamedTuple):
    id: str
    kind: str
    name: str
    version: VersionRow


def rank(query: EntryQuery, pool: CandidateSet) -> list[RankedCandidate]:
    """Return candidates with their scores, best first."""
    levels = {
        scope: (depth, scoring.scope_points(depth, len(query.scopes))) for depth, scope in enumerate(query.scopes)
    }
    now, related = datetime.fromisoformat(query.now), query.related_ids is not None
    ranked: list[RankedCandidate] = []
    for item in pool.candidates:
        depth, nearness = levels[item.scope]
        age = scoring.age_days(item.created_at, now)
        score = scoring.score(
            nearness,
            age,
            item.priority,
            pool.tag_counts.get(item.id, 0),
            related=related,
            relevance=pool.relevance.get(item.id),
        )
        ranked.append(RankedCandidate(item.expired, -score, age, _KIND_ORDER[item.kind], depth, item.seq, item))
    ranked.sort()
    return ranked


def find_candidates(tx: Tx, query: EntryQuery) -> CandidateSet:
    """Return the candidates of a query; without a text or a filter only those that can be on the page, with the full
    count.
    """
    if query.text:
        return _find_by_text(tx, query)
    if _is_unfiltered(query) and not query.include_inactive:
        return _find_top(tx, query) if query.as_of is None else _find_top_as_of(tx, query, query.as_of)
    found, tag_counts = visible(tx, query, _narrowest_ids(tx, query))
    return CandidateSet(found, len(found), tag_counts)


def _is_unfiltered(query: EntryQuery) -> bool:
    """Return whether no filter requires a tag or a relation."""
    return query.related_ids is None and query.tags.include is None and not query.tags.require


def _find_top(tx: Tx, query: EntryQuery) -> CandidateSet:
    """Return every entry that can be among the first `limit` of any kind.

    Within one scope, entries sort by the column `standing` (which includes recency) while they are fresh, and by
    priority afterwards, so the first of both orders are enough.
    """
    excluded = sorted(query.tags.exclude) if query.tags.exclude else None
    params = {"scopes": query.scopes, "shadowed": query.include_shadowed, "excluded": excluded, "limit": query.limit}
    found = tx.all("scopes.query.by_score", Candidate, kinds=query.kinds, now=query.now, expired=0, **params)
    if "guideline" in query.kinds:
        found += tx.all("scopes.query.by_priority", Candidate, **params)
    # Expired entries rank last, so they are read only if the others do not fill the page.
    if "knowledge" in query.kinds and sum(item.kind == "knowledge" for item in found) < query.limit:
        found += tx.all("scopes.query.by_score", Candidate, kinds=["knowledge"], now=query.now, expired=1, **params)
    return CandidateSet(list(dict.fromkeys(found)), _count(tx, query))


def _find_top_as_of(tx: Tx, query: EntryQuery, at: str) -> CandidateSet:
    """Return the same as of a time: the first of both orders of what is as it was, and all that was deactivated since
    or given another category or priority.
    """
    where: dict[str, Any] = {"scopes": query.scopes, "shadowed": query.include_shadowed, "at": at}
    excluded = sorted(query.tags.exclude) if query.tags.exclude else None
    params = {**where, "excluded": excluded, "limit": query.limit}
    top = _julian_day(at) + _ROUNDING_DAYS
    found = tx.all("scopes.query.by_score_as_of", Candidate, kinds=query.kinds, expired=0, top=top, **params)
    if "guideline" in query.kinds:
        found += tx.all("scopes.query.by_priority_as_of", Candidate, **params)
    if "knowledge" in query.kinds and sum(item.kind == "knowledge" for item in found) < query.limit:
        found += tx.all("scopes.query.by_score_as_of", Candidate, kinds=["knowledge"], expired=1, top=top, **params)
    gone = tx.all("scopes.query.deactivated_since", str, kinds=query.kinds, scopes=query.scopes, at=at)
    total = tx.one("scopes.query.count_as_of", int, kinds=query.kinds, scopes=query.scopes, at=at) or 0
    if not query.include_shadowed:
        total -= tx.one("scopes.query.count_shadowed_as_of", int, kinds=query.kinds, scopes=query.scopes, at=at) or 0
    total -= tx.one("scopes.query.count_versionless", int, kinds=query.kinds, **where) or 0
    total += len(visible(tx, query._replace(tags=TagIds()), gone)[0]) - _count_excluded(tx, query)
    changed = tx.all("scopes.query.changed_since", str, kinds=query.kinds, scopes=query.scopes, at=at)
    return CandidateSet(list(dict.fromkeys([*found, *visible(tx, query, [*gone, *changed])[0]])), total)


def _julian_day(time: str) -> float:
    return (stored_time(time) - EPOCH) / timedelta(days=1) + _EPOCH_JULIAN_DAY


def _count(tx: Tx, query: EntryQuery) -> int:
    """Return the number of matches: the index holds exactly the active entries, so it can count them."""
    total = index.count(tx, _partitions(query))
    if not query.include_shadowed:
        total -= tx.one("scopes.query.count_shadowed", int, kinds=query.kinds, scopes=query.scopes) or 0
    return total - _count_excluded(tx, query)


def _count_excluded(tx: Tx, query: EntryQuery) -> int:
    """Return the number of entries that only the excluded tags keep from matching."""
    if not query.tags.exclude:
        return 0
    ids = tx.all("scopes.query.ids_with_tags", str, tags=sorted(query.tags.exclude))
    return len(visible(tx, query._replace(tags=TagIds()), ids)[0])


def _narrowest_ids(tx: Tx, query: EntryQuery) -> Collection[str]:
    """Return the ids that pass the most selective filter, or all in the scopes."""
    if query.related_ids is not None:
        return query.related_ids
    required = query.tags.require[:1] or ((query.tags.include,) if query.tags.include is not None else ())
    if required:
        return tx.all("scopes.query.ids_with_tags", str, tags=sorted(required[0]))
    return tx.all("scopes.query.entry_ids", str, kinds=query.kinds, scopes=query.scopes)


def _find_by_text(tx: Tx, query: EntryQuery) -> CandidateSet:
    """Return every entry that holds the words, and the nearest hundred by meaning, or more if filters leave too few."""
    within, width = _partitions(query), max(index.CANDIDATES, query.limit)
    filtered_ids = None if _is_unfiltered(query) else _filtered_ids(tx, query)
    if filtered_ids == []:
        return CandidateSet([], 0)
    matched = index.search(tx, query.text, within=within, semantic=False, all_matches=True)
    ranks = {hit.id: hit.text_rank for hit in matched if hit.text_rank is not None}
    while True:
        best = ranked(tx, query.text, within=within, limit=width, semantic=query.threshold is not None, whole=True)
        similar = _similar_ids((one.hit for one in best), query.threshold)
        found, tag_counts = visible(tx, query, [*ranks, *(similar - ranks.keys())])
        found = [item for item in found if item.indexed]
        truncated = len(similar) >= width
        if not truncated or sum(item.id in similar for item in found) >= query.limit:
            break
        width *= _WIDENING_FACTOR
    pool = CandidateSet(found, len(found), tag_counts, _relevance(best, ranks), truncated)
    return _add_substring_matches(tx, query, pool, filtered_ids, text_matched=bool(ranks))


def _relevance(best: Sequence[index.Scored], ranks: Mapping[str, float]) -> dict[str, float]:
    """Return the evidence of each entry: that of all signals for the best, for the others that of their words, and no
    more.
    """
    known = {one.hit.id: one.score for one in best}
    most = index.Weights().words * min(known.values(), default=1.0) / max(ranks.values(), default=1.0)
    return {key: most * rank for key, rank in ranks.items()} | known


def _filtered_ids(tx: Tx, query: EntryQuery) -> list[str]:
    return [item.id for item in visible(tx, query, _narrowest_ids(tx, query))[0]]


def _partitions(query: EntryQuery) -> list[tuple[str, str | None]]:
    return [(KINDS[kind].space, scope) for kind in query.kinds for scope in query.scopes]


def _similar_ids(hits: Iterable[index.Hit], threshold: float | None) -> set[str]:
    if threshold is None:
        return set()
    min_cosine = scoring.cosine(threshold)
    return {hit.id for hit in hits if hit.similarity is not None and hit.similarity >= min_cosine}


def _add_substring_matches(
    tx: Tx, query: EntryQuery, pool: CandidateSet, filtered_ids: Sequence[str] | None, *, text_matched: bool
) -> CandidateSet:
    """Return the pool with entries that hold each word of the text as a substring.

    Of what only the rows have, inactive entries and older versions, all of them; of what the index has only if nothing
    else matches and the index holds none of the words. `filtered_ids` limits the rows to be read, unless it is None.
    """
    words = query.text.split()
    unindexed = _unindexed_ids(tx, query, filtered_ids, words)
    nothing = not pool.candidates and not text_matched
    indexed = set(index.containing(tx, words, _partitions(query))) if nothing else set[str]()
    if not unindexed and not indexed:
        return pool
    more, tag_counts = visible(tx, query, [*unindexed | indexed])
    more = [item for item in more if item.id in (indexed if item.indexed else unindexed)]
    known = {item.id for item in pool.candidates}
    found = [*pool.candidates, *(item for item in more if item.id not in known)]
    relevance = {item.id: _ALL_WORDS for item in more} | dict(pool.relevance)
    return CandidateSet(found, len(found), {**pool.tag_counts, **tag_counts}, relevance, pool.truncated)


def _unindexed_ids(tx: Tx, query: EntryQuery, filtered_ids: Sequence[str] | None, words: Sequence[str]) -> set[str]:
    """Return the entries that hold the words in a version which the index does not have."""
    if query.as_of is None and not query.include_inactive:
        return set()
    if filtered_ids is None:
        where: dict[str, Any] = {"kinds": query.kinds, "scopes": query.scopes}
        rows = tx.all("scopes.query.unindexed", _entry_text, at=query.as_of, **where)
    else:
        rows = tx.all("scopes.query.unindexed_by_ids", _entry_text, ids=filtered_ids, at=query.as_of)
    folded = [word.casefold() for word in words]
    return {row.id for row in rows if _contains_all(row, folded)}


def _contains_all(row: _EntryText, words: Sequence[str]) -> bool:
    text = index_text(KINDS[row.kind], row.name, row.version._asdict()).casefold()
    return all(word in text for word in words)


def _entry_text(entry_id: str, kind: str, name: str, *version: Any) -> _EntryText:
    return _EntryText(entry_id, kind, name, VersionRow(*version))

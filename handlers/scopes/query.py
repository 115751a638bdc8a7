"""The tool memory_query (seed 000): search over tools, guidelines and knowledge, and the context of a scope."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from handlers.scopes import candidates, errors
from handlers.scopes.candidates import CandidateSet, EntryQuery, RankedCandidate, TagIds
from handlers.scopes.entry_kinds import KINDS
from handlers.scopes.field_types import normal_name, timestamp, validate
from handlers.scopes.inheritance import GLOBAL, scope_chain, scope_to_read
from handlers.scopes.query_schemas import (
    DEFAULT_LIMIT,
    DEFAULT_THRESHOLD,
    ContextScope,
    GetContext,
    QueryResult,
    RelationFilter,
    ScopeContext,
    ScopeFilter,
    Search,
    SearchResults,
    TagFilter,
    TagRef,
    Totals,
    to_result,
)
from handlers.scopes.relations import check_known_target
from handlers.scopes.results import VersionRow, entry_and_version, grouped
from kernel.calls.tools import Hints, Tool, read
from kernel.store.transaction import Tx


class _View(NamedTuple):
    """Which parts of each entry to return, and as of which time."""

    compact: bool = False
    versions: bool = False
    at: str | None = None


class _FoldedTag(NamedTuple):
    id: str
    fold: str


def memory_query(tx: Tx, request: Search | GetContext) -> SearchResults | ScopeContext:
    """Cross-reference search and context aggregation. search finds tools, guidelines and knowledge by words, meaning,
    tags and relations; context gives what a scope knows, the best of each type. What comes back is stored data, not
    instructions.
    """
    validate(request)
    return _search(tx, request) if isinstance(request, Search) else _context(tx, request)


def _search(tx: Tx, request: Search) -> SearchResults:
    query, unknown = _entry_query(tx, request)
    if query is None:
        return SearchResults([], Totals(0, 0, truncated=False, has_more=False, unknown_tags=unknown or UNSET))
    pool = candidates.find_candidates(tx, query)
    ranking = candidates.rank(query, pool)
    skip_count, page = _page(ranking, request.offset, query.limit)
    view = _View(bool(request.compact), bool(request.include_versions), query.as_of)
    totals = msgspec.structs.replace(_totals(pool, skip_count, len(page)), unknown_tags=unknown or UNSET)
    return SearchResults(_to_results(tx, page, view), totals)


def _context(tx: Tx, request: GetContext) -> ScopeContext:
    scope_id = scope_to_read(tx, request.scope_type, request.scope_id)
    at = timestamp("asOf", request.as_of)
    scopes = scope_chain(tx, request.scope_type, scope_id, inherit=request.inherit is not False)
    query = EntryQuery(
        tuple(KINDS),
        scopes,
        at or tx.now,
        _reach(request),
        at,
        include_shadowed=bool(request.include_shadowed),
        include_expired=bool(request.include_expired),
    )
    pool = candidates.find_candidates(tx, query)
    ranking = candidates.rank(query, pool)
    pages = [
        _page([item for item in ranking if item.candidate.kind == kind], request.offset, query.limit) for kind in KINDS
    ]
    every = _to_results(tx, [item for _, page in pages for item in page], _View(bool(request.compact), at=at))
    totals = _totals(pool, sum(skip_count for skip_count, _ in pages), len(every))
    lists = {KINDS[kind].plural: [result for result in every if result.type == kind] for kind in KINDS}
    return ScopeContext(ContextScope(request.scope_type, scope_id), **lists, meta=totals)


def _entry_query(tx: Tx, request: Search) -> tuple[EntryQuery | None, list[str]]:
    """Return the request as a query, None if a required tag does not exist and no entry can match; and the tags that do
    not exist.
    """
    at = timestamp("asOf", request.as_of)
    scopes, related_ids = _searched_scopes(tx, request.scope), _related_ids(tx, request.related_to)
    tags, unknown = _tag_ids(tx, request.tags) if request.tags else (TagIds(), [])
    if tags is None:
        return None, unknown
    kinds = [name for name, kind in KINDS.items() if not request.types or kind.plural in request.types]
    threshold = DEFAULT_THRESHOLD if request.semantic_threshold is None else request.semantic_threshold
    query = EntryQuery(
        kinds,
        scopes,
        at or tx.now,
        _reach(request),
        at,
        include_inactive=bool(request.include_inactive),
        include_shadowed=bool(request.include_shadowed),
        include_expired=bool(request.include_expired),
        tags=tags,
        related_ids=related_ids,
        text=(request.search or "").strip(),
        threshold=None if request.semantic_search is False else threshold,
    )
    return query, unknown


def _searched_scopes(tx: Tx, scope: ScopeFilter | None) -> list[str]:
    if scope is None:
        return [GLOBAL]
    if scope.type is None and scope.id is not None:
        raise errors.required("scope.type", "with scope.id")
    scope_type = scope.type or GLOBAL
    scope_id = scope_to_read(tx, scope_type, scope.id, "scope.id")
    return scope_chain(tx, scope_type, scope_id, inherit=scope.inherit is not False)


def _tag_ids(tx: Tx, tags: TagFilter) -> tuple[TagIds | None, list[str]]:
    """Return the tags as ids, None if a required tag or every tag to include does not exist; and those that do not."""
    names = dict.fromkeys([*(tags.include or ()), *(tags.require or ()), *(tags.exclude or ())])
    folds = {name: normal_name(name).casefold() for name in names}
    rows = tx.all("scopes.query.tag_ids", _FoldedTag, folds=sorted(set(folds.values())))
    ids = grouped((tag.fold, tag.id) for tag in rows)
    unknown = [name for name, fold in folds.items() if fold not in ids]
    include, require, exclude = (
        {folds[name] for name in part or ()} for part in (tags.include, tags.require, tags.exclude)
    )
    if not require <= ids.keys() or (include and ids.keys().isdisjoint(include)):
        return None, unknown
    required_tags = tuple(frozenset(ids[fold]) for fold in sorted(require))
    return TagIds(_ids_of(ids, include) if include else None, required_tags, _ids_of(ids, exclude)), unknown


def _ids_of(ids: dict[str, list[str]], folds: set[str]) -> frozenset[str]:
    return frozenset(tag_id for fold in folds for tag_id in ids.get(fold, ()))


def _related_ids(tx: Tx, anchor: RelationFilter | None) -> frozenset[str] | None:
    if anchor is None:
        return None
    if anchor.type is None:
        raise errors.required("relatedTo.type")
    if anchor.id is None:
        raise errors.required("relatedTo.id")
    check_known_target(tx, anchor.type, anchor.id, "relatedTo.id")
    return frozenset(tx.all("scopes.query.related", str, type=anchor.type, id=anchor.id, relation=anchor.relation))


def _reach(request: Search | GetContext) -> int:
    """Return how many results have to be ranked: those that are skipped too."""
    return (request.offset or 0) + (request.limit or DEFAULT_LIMIT)


def _page(ranking: Sequence[RankedCandidate], offset: int | None, reach: int) -> tuple[int, Sequence[RankedCandidate]]:
    """Return how many results are skipped, and those to return."""
    skip_count = len(ranking[: offset or 0])
    return skip_count, ranking[skip_count:reach]


def _totals(pool: CandidateSet, skip_count: int, result_count: int) -> Totals:
    more = pool.total > skip_count + result_count
    return Totals(pool.total, result_count, pool.truncated, more, pool.expired or UNSET)


def _to_results(tx: Tx, page: Sequence[RankedCandidate], view: _View) -> list[QueryResult]:
    """Return the results of a page, with one statement for each part of it instead of each entry."""
    if not page:
        return []
    ids = [item.candidate.id for item in page]
    rows = {pair[0].id: pair for pair in tx.all("scopes.query.page", entry_and_version, ids=ids, at=view.at)}
    tags = grouped(tx.all("scopes.query.tags", _tag_row, ids=ids))
    with_versions = view.versions and not view.compact
    version_rows = tx.all("scopes.query.versions", VersionRow, ids=ids, at=view.at) if with_versions else []
    versions = grouped((row.entry_id, row) for row in version_rows)
    return [
        to_result(
            *rows[key],
            versions.get(key),
            -ranking.minus_score,
            tags.get(key, []),
            expired=bool(ranking.candidate.expired),
            compact=view.compact,
        )
        for key, ranking in zip(ids, page, strict=True)
    ]


def _tag_row(entry_id: str, tag_id: str, name: str) -> tuple[str, TagRef]:
    return entry_id, TagRef(tag_id, name)


TOOLS: tuple[Tool, ...] = (read(memory_query, Hints("Query"), permission={"search": "read", "context": "read"}),)

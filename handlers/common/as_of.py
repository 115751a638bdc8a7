"""Recall as of a time: what stood then, still in the index or only in the history."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypedDict

from handlers.common.filters import Filters, folder_documents, matches
from kernel.search import index, past
from kernel.search.index import Candidates, Document, Weights
from kernel.store.transaction import Tx

_WIDENING_FACTOR = 8
_ALWAYS_ONE_BY_ONE = 100  # documents; each takes a tenth of a millisecond
_LEAST_SHARE = 8  # of all documents one in so many must pass, so that the hits of a search leave enough


class Changed(NamedTuple):
    """The memories that stood then and have changed since, under ids that no document has, and the evidence of them."""

    documents: Mapping[int, Document]
    found: Candidates


class _Limits(TypedDict):
    spaces: Sequence[str] | None
    actor: str | None
    after: str
    before: str


def search_changed(tx: Tx, query: str, filters: Filters, weights: Weights) -> Changed:
    """The memories that have changed since, searched by what they said then."""
    documents, _ = past.changed(tx, filters.at, query=query, **_limits(filters))
    kept = {document.doc: document for document in documents if matches(filters, document)}
    texts = [document.text for document in kept.values()]
    return Changed(kept, past.find_in(tx, query, texts, [*kept], weights))


def prefilter(tx: Tx, filters: Filters) -> list[int] | None:
    """The documents to search one by one where few of all stood then; None to filter the hits of a search."""
    folder = folder_documents(tx, filters)
    if folder is not None:
        return folder
    docs = index.prefilter(tx, filters.actor, filters.after, filters.before, filters.within)
    if docs is None or len(docs) <= _ALWAYS_ONE_BY_ONE or len(docs) * _LEAST_SHARE < index.last_doc_id(tx):
        return docs
    return None


def documents_of(tx: Tx, at: str, docs: Sequence[int], changed: Changed) -> dict[int, Document]:
    """Those of `docs` that stood then, as they did; what has changed since is among `changed` or left out."""
    unchanged = index.documents(tx, past.unchanged(tx, at, [doc for doc in docs if doc not in changed.documents]))
    return unchanged | {doc: changed.documents[doc] for doc in docs if doc in changed.documents}


def newest(tx: Tx, filters: Filters, limit: int) -> list[Document]:
    """The documents that stood then, last changed first: all of them if they are fewer than `limit`."""
    span = (filters.actor, filters.after, filters.before, filters.within)
    documents = index.documents(tx, past.newest_unchanged(tx, filters.at, *span, limit))
    found = [*documents.values(), *_newest_changed(tx, filters, limit)]
    found.sort(key=lambda document: (document.updated_at, document.doc), reverse=True)
    return found[:limit]


def _newest_changed(tx: Tx, filters: Filters, limit: int) -> list[Document]:
    width = limit
    while True:
        # The history has other things than memories too.
        found, all_of_them = past.changed(tx, filters.at, limit=width, **_limits(filters))
        if all_of_them or len(found) >= limit:
            return found
        width *= _WIDENING_FACTOR


def by_keys(tx: Tx, at: str, keys: Sequence[tuple[str, str]]) -> tuple[list[Document], int]:
    """The memories of these (space, key) pairs as they stood then, in that order, and the number of those that stood
    then and have changed since, without a text of then.
    """
    today = index.documents(tx, index.doc_ids(tx, keys))
    unchanged = [today[doc] for doc in past.unchanged(tx, at, [*today])]
    found = {(document.space, document.key): document for document in (*unchanged, *past.changed_of(tx, at, keys))}
    unrecorded = sum(
        document.created_at <= at < document.updated_at and past.is_unrecorded(tx, document.space)
        for document in today.values()
    )
    return [found[key] for key in keys if key in found], unrecorded


def count_unrecorded(tx: Tx, filters: Filters) -> int:
    """The memories that stood then and have changed since, without a text of then: of what place and scope leave."""
    places = index.partitions_of(tx, None, None, None) if filters.within is None else filters.within
    spaces = {space for space, _ in places if past.is_unrecorded(tx, space)}
    return past.count_unrecorded(tx, filters.at, [*spaces], filters.scope)


def _limits(filters: Filters) -> _Limits:
    spaces = None if filters.within is None else [*filters.spaces]
    return {"spaces": spaces, "actor": filters.actor, "after": filters.after, "before": filters.before}

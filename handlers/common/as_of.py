"""Recall as of a time: the memories of that time, still in the index or only in the history."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from handlers.common.filters import Filters, folder_documents, matches
from kernel.memories import as_of
from kernel.search import index
from kernel.search.index import Candidates, Document, Weights
from kernel.store.transaction import Tx

_PAGE = 200  # documents that are read at once
_GROWTH = 4
_ALWAYS_ONE_BY_ONE = 100  # documents; each takes a tenth of a millisecond
_LEAST_SHARE = 8  # the inverse share of all documents that must pass, so that the hits of a search leave enough


class Changed(NamedTuple):
    """The memories that stood then and have changed since, under ids that no document has, and the evidence of them."""

    documents: Mapping[int, Document]
    found: Candidates


def search_changed(tx: Tx, query: str, filters: Filters, weights: Weights) -> Changed:
    """Return the memories that have changed since, searched by their texts of that time."""
    keys, limits, passes = _tagged(filters), _limits(filters), partial(matches, filters)
    documents = as_of.changed(tx, filters.at, query=query, keys=keys, limits=limits, passes=passes)
    by_doc = {document.doc: document for document in documents}
    texts = [document.text for document in documents]
    return Changed(by_doc, as_of.find_in(tx, query, texts, [*by_doc], weights))


def prefilter(tx: Tx, filters: Filters) -> list[int] | None:
    """Return the documents to search singly if few of all stood then; None to filter the hits of a search."""
    folder = folder_documents(tx, filters)
    if folder is not None:
        return folder
    docs = index.prefilter(tx, filters.actor, filters.after, filters.before, filters.within)
    if docs is None or len(docs) <= _ALWAYS_ONE_BY_ONE or len(docs) * _LEAST_SHARE < index.last_doc_id(tx):
        return docs
    return None


def documents_of(tx: Tx, at: str, docs: Sequence[int], changes: Changed) -> dict[int, Document]:
    """Return those of `docs` that stood then, as they did; memories changed since are among `changes` or left out."""
    same_documents = index.documents(tx, as_of.unchanged(tx, at, [doc for doc in docs if doc not in changes.documents]))
    return same_documents | {doc: changes.documents[doc] for doc in docs if doc in changes.documents}


def newest(tx: Tx, filters: Filters, passes: Callable[[Document], bool], limit: int) -> list[Document]:
    """Return the first documents that stood then and pass, last changed first."""
    keys, limits = _tagged(filters), _limits(filters)
    documents = [
        *_newest_unchanged(tx, filters, passes, limit),
        *as_of.changed(tx, filters.at, keys=keys, limits=limits, passes=passes, limit=limit),
    ]
    documents.sort(key=lambda document: (document.updated_at, document.doc), reverse=True)
    return documents[:limit]


def _newest_unchanged(tx: Tx, filters: Filters, passes: Callable[[Document], bool], limit: int) -> list[Document]:
    page_documents: list[Document] = []
    for docs in _unchanged(tx, filters, limit):
        for start in range(0, len(docs), _PAGE):
            page = docs[start : start + _PAGE]
            documents = index.documents(tx, page)
            page_documents += [documents[doc] for doc in page if doc in documents and passes(documents[doc])]
            if len(page_documents) >= limit:
                return page_documents
    return page_documents


def _unchanged(tx: Tx, filters: Filters, first: int) -> Iterator[Sequence[int]]:
    """Yield the documents that stood then as they are, last changed first: a few, and more each time."""
    if filters.tagged is not None:
        yield as_of.unchanged(tx, filters.at, index.doc_ids(tx, sorted(filters.tagged)))[: as_of.MAX_CANDIDATES]
        return
    offset, size = 0, first
    while offset < as_of.MAX_CANDIDATES:
        docs = as_of.newest_unchanged(tx, filters.at, _limits(filters), filters.within, limit=size, offset=offset)
        yield docs
        if len(docs) < size:
            return
        offset, size = offset + size, min(size * _GROWTH, as_of.MAX_CANDIDATES - offset - size)


def by_keys(tx: Tx, at: str, keys: Sequence[tuple[str, str]]) -> tuple[list[Document], int]:
    """Return the memories of these (space, key) pairs as they stood then, in that order, and the number of those that
    stood then and have changed since, without a text of then.
    """
    today = index.documents(tx, index.doc_ids(tx, keys))
    same_documents = [today[doc] for doc in as_of.unchanged(tx, at, [*today])]
    by_key = {
        (document.space, document.key): document
        for document in (*same_documents, *as_of.changed(tx, at, keys=keys, limit=len(keys)))
    }
    unrecorded_count = sum(
        document.created_at <= at < document.updated_at and as_of.is_unrecorded(tx, document.space)
        for document in today.values()
    )
    return [by_key[key] for key in keys if key in by_key], unrecorded_count


def count_unrecorded(tx: Tx, filters: Filters) -> int:
    """Return the number of memories in place and scope that have changed since then and whose text of then is lost."""
    places = index.partitions_of(tx, None, None, None) if filters.within is None else filters.within
    spaces = {space for space, _ in places if as_of.is_unrecorded(tx, space)}
    return as_of.count_unrecorded(tx, filters.at, [*spaces], filters.scopes)


def _tagged(filters: Filters) -> list[tuple[str, str]] | None:
    return None if filters.tagged is None else sorted(filters.tagged)


def _limits(filters: Filters) -> as_of.Limits:
    spaces = None if filters.within is None else [*filters.spaces]
    folder = f"{filters.folder}/" if filters.folder else ""
    return as_of.Limits(spaces, filters.scopes, folder, filters.actor, filters.after, filters.before)

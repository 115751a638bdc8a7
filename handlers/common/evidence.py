"""Hits that answer a question by themselves, not only better than others."""

from collections.abc import Collection

from handlers.common.retrieval import find, prepare
from handlers.common.schemas import Recall
from kernel.search.index import Document
from kernel.store.transaction import Tx

_QUERY_CHARS = 1000  # of a prompt; the rest is often a log or a file
_STRONG_MEANING = 0.55


def strong_hits(tx: Tx, query: str, limit: int, given: Collection[str] = ()) -> list[Document]:
    """The best hits with strong evidence, without those of these ids."""
    _, items = find(tx, prepare(tx, Recall(query=query[:_QUERY_CHARS], limit=limit + len(given)), None))
    found = [
        item.document
        for item in items
        if item.scored is not None
        and item.scored.hit.similarity is not None
        and item.scored.hit.similarity >= _STRONG_MEANING
        and f"{item.document.space}/{item.document.key}" not in given
    ]
    return found[:limit]

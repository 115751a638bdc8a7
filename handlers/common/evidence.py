"""Hits that answer a question by themselves, not only better than others."""

from collections.abc import Collection

from handlers.common.retrieval import find, prepare
from handlers.common.schemas import Recall
from kernel.search.index import Document
from kernel.store.transaction import Tx

_QUERY_CHARS = 1000  # of a prompt; the rest is often a log or a file


def strong_hits(tx: Tx, query: str, limit: int, given: Collection[str] = ()) -> list[Document]:
    """The best hits with strong evidence, without those of these ids."""
    asked = Recall(query=query[:_QUERY_CHARS], floor="strong", limit=min(limit + len(given), 100))
    _, ranked = find(tx, prepare(tx, asked, None))
    documents = [item.document for item in ranked.items]
    return [one for one in documents if f"{one.space}/{one.key}" not in given][:limit]

"""Hits that answer a question by themselves, not only better than others."""

from collections.abc import Collection

from handlers.common.retrieval import find, prepare
from handlers.common.schemas import Floor, Recall
from kernel.search.index import Document
from kernel.store.transaction import Tx

# Least strength for a prompt, which as a rule asks nothing: with .95, 6 to 9 % of the prompts without an answer get
# memories, with .99 three tenths of those with one get none (`loadtests.benchmarks.first_prompt`).
PROMPT_FLOOR = 0.98
_QUERY_CHARS = 1000  # of a prompt; the rest is often a log or a file


def hits_above(tx: Tx, query: str, floor: Floor, limit: int, given: Collection[str] = ()) -> list[Document]:
    """Return the best hits of at least this strength, without those of these ids."""
    request = Recall(query=query[:_QUERY_CHARS], floor=floor, limit=min(limit + len(given), 100))
    _, ranked = find(tx, prepare(tx, request, None))
    documents = [item.document for item in ranked.items]
    return [document for document in documents if f"{document.space}/{document.key}" not in given][:limit]

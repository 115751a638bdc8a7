"""The documents in reach of a key that is held to places, by which the signals of a search filter their candidates.

The store says which documents a key sees; each search asks it again for documents put since the last. Flags only choose
candidates: the store still filters the rows of an answer.
"""

from collections.abc import Collection

from kernel.search.cache import Reached, SearchCache
from kernel.search.documents import seen
from kernel.search.vectors import model_id
from kernel.store.transaction import Tx

# A byte for each document and key. With 32 keys as the only bound, 40 keys in turn took 58 ms for a search of 10,000
# documents; with bytes as a second, 10 ms.
_LEAST_KEPT, _MOST_BYTES = 32, 16 << 20
_NONE = Reached(b"\0", 0, 0, 0)


def reached(tx: Tx) -> Reached | None:
    """Return the documents in reach of a call, None if all are or no vectors say which were put again."""
    cache: SearchCache = tx.context.search_cache
    reach = tx.reach
    if reach is None or not cache.can_cache(tx) or not model_id(tx):
        return None
    last, before = cache.last_ids(tx), cache.reached.get(reach, _NONE)
    if last.doc <= before.doc and last.vector <= before.vector:
        return before
    with tx.held_to(None):
        put = tx.all("kernel.documents.put_since", int, doc=before.doc, vector=before.vector)
    flags = bytearray(before.flags.ljust(last.doc + 2, b"\0"))
    shown = seen(tx, put)
    for doc in put:
        flags[doc] = doc in shown
    if len(cache.reached) >= _LEAST_KEPT and len(flags) * len(cache.reached) > _MOST_BYTES:
        cache.reached.clear()
    after = Reached(bytes(flags), flags.count(1), last.doc, last.vector)
    cache.reached[reach] = after
    return after


def seen_among(tx: Tx, docs: Collection[int]) -> set[int]:
    """Return those of some documents that the call sees."""
    if not docs or not (of_key := reached(tx)):
        return seen(tx, docs)
    return {doc for doc in docs if doc < len(of_key.flags) and of_key.flags[doc]}

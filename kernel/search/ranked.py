"""The search of a tool: the best documents by all evidence, with their keys."""

from collections.abc import Sequence

from msgspec.structs import replace

from kernel.search import index
from kernel.store.transaction import Tx


def ranked(
    tx: Tx,
    text: str,
    *,
    within: index.Within,
    limit: int,
    lexical: bool = True,
    semantic: bool = True,
    weights: index.Weights | None = None,
    whole: bool = False,
) -> list[index.Scored]:
    """Return the `limit` best documents by all evidence, best first, with their space and key; `whole`, with all
    candidates.

    Without `weights` the usual ones; of words or meaning alone only that signal counts.
    """
    usual = index.Weights() if lexical and semantic else index.Weights(lexical, semantic, 0, 0)
    matches = index.find(
        tx, text, within=within, limit=max(index.CANDIDATES, limit), lexical=lexical, semantic=semantic
    )
    ranking = index.rerank(tx, text, matches, weights or usual).fused
    return _with_keys(tx, ranking.scored(len(ranking.scores) if whole else limit))


def _with_keys(tx: Tx, hits: Sequence[index.Scored]) -> list[index.Scored]:
    """Return the same with the space and the key of each document."""
    keys = {row.doc: row for row in tx.all("kernel.index.keys_of", index.Key, ids=[hit.hit.doc for hit in hits])}
    pairs = [(hit, keys[hit.hit.doc]) for hit in hits if hit.hit.doc in keys]
    return [replace(hit, hit=replace(hit.hit, space=row.space, id=row.key)) for hit, row in pairs]

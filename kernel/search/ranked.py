"""The search of a tool: the best documents by all evidence, with their keys."""

from collections.abc import Sequence

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
    found = index.find(tx, text, within=within, limit=max(index.CANDIDATES, limit), lexical=lexical, semantic=semantic)
    fused = index.rerank(tx, text, found, weights or usual).fused
    return _with_keys(tx, fused.scored(len(fused.scores) if whole else limit))


def _with_keys(tx: Tx, scored: Sequence[index.Scored]) -> list[index.Scored]:
    """Return the same with the space and the key of each document."""
    keys = {row.doc: row for row in tx.all("kernel.index.keys_of", index.Key, ids=[one.hit.doc for one in scored])}
    held = [(one, keys[one.hit.doc]) for one in scored if one.hit.doc in keys]
    return [one._replace(hit=one.hit._replace(space=row.space, id=row.key)) for one, row in held]

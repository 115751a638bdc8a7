"""Late interaction (MaxSim): how well a text matches a query token by token, over static token vectors."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Ids = NDArray[np.unsignedinteger] | NDArray[np.signedinteger]
    Sizes = NDArray[np.int64]
    VectorLookup = Callable[[Ids], Array]
    """The vectors of token ids, one per row."""

MAX_QUERY_TOKENS = 16  # the heaviest of a long query; bounds its cost; not measured
LENGTH_PENALTY = 0.04  # times ln(tokens): long texts have better maxima by chance; no record of the choice
OPENING_TOKENS = 16  # with 12 or 24, nDCG@10 differs by at most .007, either way
_BIGRAM_SHARE = 1 / 3  # of the score comes from pairs of adjacent tokens; no record of the choice
_BATCH_TOKENS = 8192  # token positions compared together, so that the similarities stay in the processor's cache
_EPSILON = 1e-12  # avoids division by zero


def interaction(
    query: "Ids", tokens: "Ids", sizes: "Sizes", token_vectors: "VectorLookup", opening_share: float = 0.0
) -> "Array":
    """A score of at most 1 for each text; `tokens` are the ids of all texts in turn, of which each has `sizes`.

    MaxSim as in ColBERT: for each query token the best cosine among the text's tokens, weighted by the length of the
    query token's vector, which is small for common tokens. A third of the score is the same over pairs of adjacent
    tokens, and LENGTH_PENALTY times the log of the text's tokens is subtracted. `opening_share` is the share of the
    score that the first OPENING_TOKENS tokens have, scored as a text of their own. 0 for a text without tokens.
    """
    import numpy as np

    scores = np.zeros(len(sizes), np.float32)
    vectors = token_vectors(query)
    weights = _lengths(vectors)
    if len(query) > MAX_QUERY_TOKENS:
        kept = np.sort(np.argsort(-weights, kind="stable")[:MAX_QUERY_TOKENS])
        vectors, weights = vectors[kept], weights[kept]
    texts = np.flatnonzero(sizes)
    if not len(texts) or not weights.sum() > _EPSILON:
        return scores
    vectors /= np.maximum(weights, _EPSILON)[:, None]
    ends = np.cumsum(sizes[texts])
    cuts = np.flatnonzero(np.diff(ends // _BATCH_TOKENS)) + 1
    parts: list[Any] = np.split(tokens, ends[cuts - 1])
    for some, part in zip(np.split(texts, cuts), parts, strict=True):
        scores[some] = _score_batch(vectors, weights, part, sizes[some], token_vectors, opening_share)
    return scores


def _score_batch(
    query: "Array", weights: "Array", tokens: "Ids", sizes: "Sizes", token_vectors: "VectorLookup", opening_share: float
) -> "Array":
    import numpy as np

    # Every distinct token is compared once: texts of one query share many of them.
    positions = np.zeros(int(tokens.max()) + 1, np.int32)
    positions[tokens] = 1
    distinct = np.flatnonzero(positions)
    positions[distinct] = np.arange(len(distinct))
    vectors = token_vectors(distinct)
    cosines = vectors @ query.T
    cosines /= np.maximum(_lengths(vectors), _EPSILON)[:, None]
    cosines = cosines.take(positions.take(tokens), 0)  # rows, one per token position: ten times as fast as columns
    scores = _scores(cosines, sizes, weights)
    if opening_share:
        offsets = np.arange(len(cosines)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        opening = _scores(cosines[offsets < OPENING_TOKENS], np.minimum(sizes, OPENING_TOKENS), weights)
        scores += np.float32(opening_share) * (opening - scores)
    return scores


def _scores(cosines: "Array", sizes: "Sizes", weights: "Array") -> "Array":
    """The score of each text; `cosines` has a row for each token of all texts, a column for each query token."""
    import numpy as np

    ends = np.cumsum(sizes)
    starts = ends - sizes
    scores = np.maximum.reduceat(cosines, starts) @ weights / weights.sum()
    if len(weights) > 1:
        pairs = np.zeros((len(cosines), len(weights) - 1), np.float32)
        np.add(cosines[:-1, :-1], cosines[1:, 1:], out=pairs[:-1])
        pairs[ends - 1] = 0  # no pair spans two texts
        both = weights[:-1] + weights[1:]
        found = np.maximum.reduceat(pairs, starts) @ both / (2 * both.sum())
        scores += _BIGRAM_SHARE * (found - scores)
    return scores - np.float32(LENGTH_PENALTY) * np.log(sizes).astype(np.float32)


def _lengths(vectors: "Array") -> "Array":
    import numpy as np

    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors)).astype(np.float32, copy=False)

"""Late interaction (MaxSim): how well a text matches a query token by token, over static token vectors."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Floats = NDArray[np.float32]
    Ids = NDArray[np.unsignedinteger] | NDArray[np.signedinteger]
    Sizes = NDArray[np.int64]
    VectorLookup = Callable[[Ids], tuple[Floats, Floats]]
    """The vectors of token ids, one per row, and their lengths."""

MAX_QUERY_TOKENS = 16  # the heaviest of a long query; bounds its cost; not measured
LENGTH_PENALTY = 0.04  # times ln(tokens): long texts have better maxima by chance; no record of the choice
OPENING_TOKENS = 16  # with 12 or 24, nDCG@10 differs by at most .007, either way
_BIGRAM_SHARE = 1 / 3  # of the score comes from pairs of adjacent tokens; no record of the choice
_BATCH_TOKENS = 8192  # token positions compared together, so that the cosines stay in the processor's cache
_NO_TOKEN = -9.0  # the cosine if a text has no token any more: less than any sum of two
_EPSILON = 1e-12  # avoids division by zero
_SAME = 0.999  # the cosine of a token and itself, but for rounding


class Interaction(NamedTuple):
    """The scores of some texts for a query, the share of the query's subject that each holds, and the same with its
    likest tokens in place of equal ones; the heavier a token, the more it counts, by the square.
    """

    scores: "Floats"
    exact: "Floats"
    near: "Floats"


def interaction(
    query: "Ids",
    tokens: "Ids",
    sizes: "Sizes",
    token_vectors: "VectorLookup",
    opening_share: float = 0.0,
    subject: "Ids | Sequence[int]" = (),
) -> Interaction:
    """Return a score of at most 1 for each text, and the shares of the query's `subject` that it holds, by default of
    all its tokens. `tokens` are the ids of all texts in turn, of which each has `sizes`.

    MaxSim as in ColBERT: for each query token the best cosine among the text's tokens, weighted by the length of the
    query token's vector, which is small for common tokens. A third of the score is the same over pairs of adjacent
    tokens, and LENGTH_PENALTY times the log of the text's tokens is subtracted. `opening_share` is the share of the
    score that the first OPENING_TOKENS tokens have, scored as a text of their own. 0 for a text without tokens.
    """
    import numpy as np

    results = np.zeros((3, len(sizes)), np.float32)
    vectors, weights = token_vectors(query)
    if len(query) > MAX_QUERY_TOKENS:
        heaviest = np.sort(np.argsort(-weights, kind="stable")[:MAX_QUERY_TOKENS])
        query, vectors, weights = query[heaviest], vectors[heaviest], weights[heaviest]
    if not len(tokens) or not np.add.reduce(weights) > _EPSILON:
        return Interaction(*results)
    shares = weights**2
    if len(subject):
        about = (query[:, None] == subject).max(axis=1)
        shares = shares * about if about.max() else shares
    shares /= max(float(np.add.reduce(shares)), _EPSILON)
    # Every distinct token is compared once: texts of one query share many of them.
    occurs = np.zeros(int(np.maximum.reduce(tokens)) + 1, np.bool_)
    occurs[tokens] = True
    (distinct,) = occurs.nonzero()
    positions = np.empty(len(occurs), np.intp)
    positions[distinct] = np.arange(len(distinct))
    cosines = _cosines(vectors, weights, *token_vectors(distinct))
    present, starts = positions.take(tokens), sizes.cumsum() - sizes
    for texts in _batches(sizes):
        # A row for each position, a column for each text.
        table = starts[texts] + np.arange(int(np.maximum.reduce(sizes[texts])))[:, None]
        table = np.where(table < starts[texts] + sizes[texts], present.take(table, mode="clip"), len(distinct))
        best, results[0, texts] = _score_batch(cosines.take(table, 0), sizes[texts], weights, opening_share)
        results[1, texts], results[2, texts] = (best > _SAME) @ shares, best.clip(0) @ shares
    return Interaction(*results)


def unmatched(first: "Ids", second: "Ids", token_vectors: "VectorLookup") -> tuple[float, float]:
    """Return how heavy the token of each text is that is least like any of the other text, over the mean weight of all.

    The weight of a token is the length of its vector, times 1 minus the best cosine; 0 if a text has no token.
    """
    import numpy as np

    if not len(first) or not len(second):
        return 0.0, 0.0
    (vectors, weights), (second_vectors, second_weights) = token_vectors(first), token_vectors(second)
    cosines = _cosines(second_vectors, second_weights, vectors, weights)[:-1]
    left = (weights * (1 - cosines.max(axis=1))).max(), (second_weights * (1 - cosines.max(axis=0))).max()
    mean = max(float(np.concatenate([weights, second_weights]).mean()), _EPSILON)
    return float(left[0]) / mean, float(left[1]) / mean


def nearest(first: "Ids", second: "Ids", token_vectors: "VectorLookup") -> float:
    """Return the largest cosine of a token of each of two texts; 0 if it is negative, or a text has no token."""
    (vectors, lengths), (second_vectors, second_lengths) = token_vectors(first), token_vectors(second)
    return float(_cosines(second_vectors, second_lengths, vectors, lengths)[:-1].max(initial=0.0))


def _batches(sizes: "Sizes") -> "Iterator[Ids]":
    """Return the texts with tokens, in batches of at most _BATCH_TOKENS positions if each is filled up to the
    longest.
    """
    import numpy as np

    batches: list[Any] = [sizes.nonzero()[0]]
    while batches:
        texts = batches.pop()
        if len(texts) > 1 and int(sizes[texts].max()) * len(texts) > _BATCH_TOKENS:
            batches += np.array_split(texts[np.argsort(sizes[texts], kind="stable")], 2)
        else:
            yield texts


def _cosines(query: "Floats", query_lengths: "Floats", vectors: "Floats", lengths: "Floats") -> "Floats":
    """Return the cosine of each vector (a row) and each of the query's (a column), and a last row of _NO_TOKEN."""
    import numpy as np

    cosines = np.empty((len(vectors) + 1, len(query)), np.float32)
    # Of int8 vectors a product in float32 takes less time than SIMD over int8 pair by pair, and is exact.
    np.matmul(vectors, query.T, out=cosines[:-1])
    cosines[:-1] /= np.maximum(lengths, _EPSILON)[:, None]
    cosines[:-1] /= np.maximum(query_lengths, _EPSILON)
    cosines[-1] = _NO_TOKEN
    return cosines


def _score_batch(cosines: "Floats", sizes: "Sizes", weights: "Floats", opening_share: float) -> "tuple[Array, Array]":
    """Return the best cosine of each text (a row) and query token, and the score of each text; `cosines` are by
    position, text and query token.
    """
    import numpy as np

    table = cosines.reshape(len(cosines), -1)
    flat, step = table.ravel(), table.shape[1] + 1
    # Each cosine and that of the next tokens, as one sum; the sums over the end of the query are not used.
    pairs = np.zeros_like(table[:-1])
    np.add(flat[:-step], flat[step:], out=pairs.reshape(-1)[:-1])
    best = np.maximum.reduce(table).reshape(-1, len(weights))  # `max` and `sum` are Python around these
    scores = _scores(best, pairs, weights) - np.float32(LENGTH_PENALTY) * _log(sizes)
    if opening_share:
        best_of_opening = np.maximum.reduce(table[:OPENING_TOKENS]).reshape(-1, len(weights))
        opening = _scores(best_of_opening, pairs[: OPENING_TOKENS - 1], weights)
        opening -= np.float32(LENGTH_PENALTY) * _log(np.minimum(sizes, OPENING_TOKENS))
        scores += np.float32(opening_share) * (opening - scores)
    return best, scores


def _scores(best: "Floats", pairs: "Floats", weights: "Floats") -> "Floats":
    """Return the weighted mean of the best cosine of each token, and that of each pair of tokens, added up."""
    import numpy as np

    scores = best @ weights / np.add.reduce(weights)
    if len(weights) > 1:
        of_pairs = weights[:-1] + weights[1:]
        pair = np.maximum.reduce(pairs, initial=0.0).reshape(-1, len(weights))
        scores += _BIGRAM_SHARE * (pair[:, :-1] @ of_pairs / (2 * np.add.reduce(of_pairs)) - scores)
    return scores


def _log(sizes: "Sizes") -> "Floats":
    import numpy as np

    return np.log(sizes).astype(np.float32)

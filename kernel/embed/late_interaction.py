"""Late interaction: how well a text answers a query token by token, over static token vectors."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

MOST_QUERY_TOKENS = 16
LENGTH_WEIGHT = 0.04
BEGINNING = 16  # tokens
_PAIR_SHARE = 1 / 3
_AT_ONCE = 8192  # token positions compared together, which keeps what is being compared in the processor's cache
_TINY = 1e-12


def interaction(
    query: "NDArray[Any]",
    texts: "Sequence[NDArray[Any]]",
    rows: "Callable[[NDArray[Any]], Array]",
    beginning: float = 0.0,
) -> list[float]:
    """A score for each text, at most 1; texts and query are token ids, `rows(ids)` gives their vectors.

    Of every token of the query the best cosine among those of the text counts (ColBERT's sum of maxima), weighted by
    the length of its vector, which is small for common tokens; a third is the same for two tokens that follow each
    other. The more tokens a text has, the better its best ones are by chance: that much is taken off.
    `beginning` is the share of the score that the first BEGINNING tokens of a text have, scored by themselves.
    """
    import numpy as np

    scores = [0.0] * len(texts)
    asked = rows(query)
    weights = _lengths(asked)
    if len(query) > MOST_QUERY_TOKENS:
        kept = np.sort(np.argsort(-weights, kind="stable")[:MOST_QUERY_TOKENS])
        asked, weights = asked[kept], weights[kept]
    if not len(asked) or not weights.sum() > _TINY:
        return scores
    asked /= np.maximum(weights, _TINY)[:, None]
    for chunk in _chunks(texts):
        found = _compared(asked, weights, [texts[number] for number in chunk], rows, beginning)
        for number, score in zip(chunk, found.tolist(), strict=True):
            scores[number] = score
    return scores


def _chunks(texts: "Sequence[NDArray[Any]]") -> list[list[int]]:
    """The numbers of the texts that have tokens, so many together as are compared at once."""
    chunks: list[list[int]] = []
    room = 0
    for number, text in enumerate(texts):
        if not len(text):
            continue
        if not chunks or len(text) > room:
            chunks.append([])
            room = _AT_ONCE
        chunks[-1].append(number)
        room -= len(text)
    return chunks


def _compared(
    asked: "Array",
    weights: "Array",
    texts: "Sequence[NDArray[Any]]",
    rows: "Callable[[NDArray[Any]], Array]",
    beginning: float,
) -> "Array":
    import numpy as np

    sizes = np.array([len(text) for text in texts])
    tokens = np.concatenate(texts)
    seen = np.zeros(int(tokens.max()) + 1, np.int32)
    seen[tokens] = 1
    distinct = np.flatnonzero(seen)
    seen[distinct] = np.arange(len(distinct))
    held = rows(distinct)
    near = held @ asked.T
    near /= np.maximum(_lengths(held), _TINY)[:, None]
    near = near.take(seen.take(tokens), 0)  # whole rows, a row for each position: ten times as fast as columns
    scores = _scores(near, sizes, weights)
    if beginning:
        places = np.arange(len(near)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        begun = _scores(near[places < BEGINNING], np.minimum(sizes, BEGINNING), weights)
        scores += np.float32(beginning) * (begun - scores)
    return scores


def _scores(near: "Array", sizes: "NDArray[np.int64]", weights: "Array") -> "Array":
    """The score of each text: `near` has a row for each of their tokens, a column for each of the query's."""
    import numpy as np

    ends = np.cumsum(sizes)
    starts = ends - sizes
    scores = np.maximum.reduceat(near, starts) @ weights / weights.sum()
    if len(weights) > 1:
        pairs = np.zeros((len(near), len(weights) - 1), np.float32)
        np.add(near[:-1, :-1], near[1:, 1:], out=pairs[:-1])
        pairs[ends - 1] = 0  # the last token of a text has none after it
        both = weights[:-1] + weights[1:]
        found = np.maximum.reduceat(pairs, starts) @ both / (2 * both.sum())
        scores += _PAIR_SHARE * (found - scores)
    return scores - np.float32(LENGTH_WEIGHT) * np.log(sizes).astype(np.float32)


def _lengths(vectors: "Array") -> "Array":
    import numpy as np

    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors)).astype(np.float32, copy=False)

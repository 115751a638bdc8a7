"""Passages: the part of a document that holds words of a query which its vector does not see.

A vector is that of a text's beginning, as far as the model reads, and not of the words beside it, such as tags. A
document found by words further on is judged by the passage around them.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from kernel.core.lazy_numpy import Array, Floats, np
from kernel.search.lexical import word_starts
from kernel.search.spellings import folded
from kernel.search.vectors import Question, embed_texts
from kernel.store.transaction import Tx

READ_CHARS = 1500  # of a text, which the model reads for sure: 512 tokens of three characters
MOST = 16  # documents of a query, those that rank best; not measured
MOST_BYTES = 4 << 20  # of their texts
_MOST_WORDS = 16  # of a query, the rarest, as in late interaction
_BEFORE, _AFTER = 80, 160  # characters around the first of the words; some 50 tokens, as a turn of a conversation
_OPENING_CHARS = 80  # of the text, which says the source of the passage
_MOST_PLACES = 8  # of a word that are tried
_MOST_LOOKED_AT = 256  # places of a short word, most of which are within others
_SHORT = 4  # letters of a word that is looked for at the beginning of words only


class Body(NamedTuple):
    """The text of a document and the words beside it."""

    text: str
    words: str


class Judged(NamedTuple):
    """The evidence of passages, each of the document at a position: cosine, late interaction, shares of the query."""

    at: list[int]
    meaning: Floats
    late: Floats
    exact: Floats
    near: Floats


def judge(tx: Tx, text: str, query: Question, bodies: Sequence[Body]) -> Judged | None:
    """Return the evidence of the passages of documents; None if no beginning leaves out a word of the query."""
    by_position = {at: passage for at, passage in enumerate(passages_of(tx, text, bodies)) if passage}
    embedder, texts = tx.context.embedder, [*by_position.values()]
    embeddings = embed_texts(tx, texts) if by_position and embedder else None
    if not embeddings or embedder is None:
        return None
    tx.drop_embeddings(texts)
    shares = embedder.interaction(
        query.whole.tokens, [embedding.tokens for embedding in embeddings], subject=query.subject
    )
    cosines = [query.whole.cosine(embedding) for embedding in embeddings]
    return Judged([*by_position], *(np.array(values, np.float64) for values in (cosines, *shares)))


def passages_of(tx: Tx, text: str, bodies: Sequence[Body]) -> list[str]:
    """Return of each document the passage that holds most of a query, with the opening before it; empty if the
    beginning lacks no word that the rest has.
    """
    starts = dict(nlargest(_MOST_WORDS, word_starts(tx, text).items(), key=lambda item: item[1]))
    return [_passage(body, starts) for body in bodies]


def raised(values: Floats, at: Array, least: Floats) -> Floats:
    """Return the values, of which those at some positions are at least as large as others."""
    values = values.copy()
    values[at] = np.fmax(values[at], least)
    return values


def _passage(body: Body, starts: Mapping[str, float]) -> str:
    beginning = folded(body.text[:READ_CHARS])
    missing = [start for start in starts if not _holds(beginning, start)]
    if not missing:
        return ""
    rest = f"{body.text[READ_CHARS - _BEFORE :]}\n{body.words}" if len(body.text) > READ_CHARS else body.words
    rest = folded(rest)
    best, most = "", 0.0
    for start in missing:
        for at in islice(_places(rest, start), _MOST_PLACES):
            window = rest[max(0, at - _BEFORE) : at + _AFTER]
            total = sum(weight for word, weight in starts.items() if _holds(window, word))
            if total > most:
                best, most = window, total
    opening = body.text[:_OPENING_CHARS].partition("\n")[0]
    return f"{opening}\n{best}" if best else ""


def _holds(text: str, start: str) -> bool:
    return next(_places(text, start), None) is not None


def _places(text: str, start: str) -> Iterator[int]:
    """Yield the positions at which a word begins, or of a longer word any position, as in a name."""
    at = text.find(start)
    for _ in range(_MOST_LOOKED_AT):
        if at < 0:
            return
        if len(start) >= _SHORT or not (at and text[at - 1].isalnum()):
            yield at
        at = text.find(start, at + 1)
